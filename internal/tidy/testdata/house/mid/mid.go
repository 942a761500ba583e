// Package mid is in the middle.
package mid

import "example.com/third/deep"

// Level is its place.
const Level = deep.Answer
