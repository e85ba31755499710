module snapana

go 1.26
