package effort

// racedShare is by how much a landing's campaign is smaller under the race detector, which makes everything five to ten times slower and
// looks for something that a fifth of the rounds has too: two goroutines at one place. The same landing runs the whole short size without it.
const racedShare = 5

// raced is what is left of a short size under the race detector: a fifth, and at least 1. The demo of slow consumers has to fill their windows
// in each phase, slower as it is then.
func raced(e Entry) int {
	if e.Name == "slow_consumer_millis" {
		return e.Short
	}
	return (e.Short + racedShare - 1) / racedShare
}
