// Package low is at the bottom and looks up.
package low

import (
	"strings"

	"example.com/house/mid" // want imports: low may not import example.com/house/mid
	"example.com/third"     // want imports: low may not import example.com/third
)

var _ = strings.Repeat("low", mid.Level+third.Answer)
