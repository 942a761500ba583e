package actors

import (
	"errors"
	"testing"
)

func TestACreditRequestIsToldOnceAndInTurn(t *testing.T) {
	c := NewCredit(1, 100)
	if !c.TryAcquire(0, 80) {
		t.Fatal("80 of 100 refused")
	}
	var order []string
	ask := func(name string, bytes int) *CreditRequest {
		return c.Request(0, bytes, func() { order = append(order, name) })
	}
	big, small := ask("big", 90), ask("small", 10)
	if granted, err := small.State(); granted || err != nil {
		t.Fatal("a small request overtook a large one")
	}
	c.Release(0, 80)
	if granted, _ := big.State(); !granted {
		t.Fatal("90 of 100 not granted")
	}
	if granted, _ := small.State(); !granted || len(order) != 2 || order[0] != "big" {
		t.Fatalf("told in the order %v", order)
	}
	if big.Cancel() || small.Cancel() {
		t.Fatal("what is granted was canceled")
	}
	c.Release(0, 100)
	if ask("later", 50); len(order) != 3 {
		t.Fatal("a request that fits at once was not told")
	}
}

func TestACanceledRequestMakesRoomForTheOneBehind(t *testing.T) {
	c := NewCredit(1, 100)
	c.TryAcquire(0, 50)
	big := c.Request(0, 90, func() {})
	small := c.Request(0, 50, func() {})
	if !big.Cancel() {
		t.Fatal("not canceled")
	}
	if granted, _ := small.State(); !granted {
		t.Fatal("the one behind still waits")
	}
}

func TestClosingTellsEveryRequestWhy(t *testing.T) {
	c := NewCredit(1, 10)
	c.TryAcquire(0, 10)
	told := 0
	r := c.Request(0, 5, func() { told++ })
	why := errors.New("enough")
	c.Close(why)
	if granted, err := r.State(); granted || !errors.Is(err, why) || told != 1 || !r.Cancel() {
		t.Fatalf("granted %v, %v, told %d times", granted, err, told)
	}
	if _, err := c.Request(0, 1, func() { told++ }).State(); !errors.Is(err, why) || told != 2 {
		t.Fatalf("a request after the end: %v, told %d times", err, told)
	}
}
