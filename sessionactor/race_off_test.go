//go:build !race

package sessionactor

const poolSlack = 0
