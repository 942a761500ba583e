module example.com/third

go 1.26.0
