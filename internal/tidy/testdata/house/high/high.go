// Package high sees what it may.
package high

import (
	"example.com/house/mid" // want reach: package high reaches example.com/house/mid -> example.com/third/deep
	"example.com/house/orders"
	"example.com/house/sums"
)

var _ = mid.Level

var _ sums.Shape

var _ = orders.Walk

func change() {
	orders.Shared = 1 // want variables: Shared changes
}
