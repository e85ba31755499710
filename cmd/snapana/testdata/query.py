# Answers the queries of the manual, given as JSON on standard input, from the tables of one run, in DuckDB and in Polars.
import json
import sys

import duckdb
import polars

folder, run, engine = sys.argv[1:]
names = ["allocations", "devices", "events", "findings", "samples", "segments", "stacks", "steps"]
if engine == "duckdb":
    con = duckdb.connect()
    for name in names:
        con.sql(f"create view {name} as select * from read_parquet('{folder}/run={run}/**/{name}.parquet', hive_partitioning=true)")
    ask = lambda query: con.sql(query).fetchall()
else:
    frames = {name: polars.scan_parquet(f"{folder}/run={run}/**/{name}.parquet", hive_partitioning=True) for name in names}
    ask = lambda query: polars.SQLContext(frames, eager=True).execute(query).rows()
print(json.dumps([[list(row) for row in ask(query)] for query in json.load(sys.stdin)]))
