//go:build race

package sessionactor

// poolSlack is what the race detector adds to an allocation count: it makes every sync.Pool forget a quarter of what it is given.
const poolSlack = 3
