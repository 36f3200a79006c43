module bellows-example

go 1.19
