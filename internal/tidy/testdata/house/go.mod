module example.com/house

go 1.26.0

require example.com/third v0.0.0

replace example.com/third => ../third
