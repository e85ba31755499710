# Answers the queries of the manual, given as JSON on standard input, from the tables of one run, in DuckDB, Polars or Spark.
import json
import sys

folder, run, engine = sys.argv[1:]
names = ["allocations", "devices", "events", "findings", "samples", "segments", "stacks", "steps"]
if engine == "duckdb":
    import duckdb

    con = duckdb.connect()
    for name in names:
        con.sql(f"create view {name} as select * from read_parquet('{folder}/run={run}/rank=*/{name}.parquet', hive_partitioning=true)")
    ask = lambda query: con.sql(query).fetchall()
elif engine == "polars":
    import polars

    frames = {name: polars.scan_parquet(f"{folder}/run={run}/rank=*/{name}.parquet", hive_partitioning=True) for name in names}
    ask = lambda query: polars.SQLContext(frames, eager=True).execute(query).rows()
else:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for name in names:
        files = spark.read.option("basePath", f"{folder}/run={run}").parquet(f"{folder}/run={run}/rank=*/{name}.parquet")
        files.createOrReplaceTempView(name)
    ask = lambda query: spark.sql(query).collect()
print(json.dumps([[list(row) for row in ask(query)] for query in json.load(sys.stdin)]))
