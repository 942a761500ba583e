package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"github.com/felixd/felixd/controlplane/model"
)

const (
	pageItemsDefault = 1000
	pageItemsMax     = 10000
	// scanItems is how many records are read from the store at a time while a page is filled.
	scanItems = 1000
)

// Page is one page of a listing in key order. NextCursor is absent on the last page.
type Page[R any] struct {
	Items      []R    `json:"items"`
	NextCursor string `json:"next_cursor,omitempty"`
}

// window is what a caller asked to see: up to limit items with a key above after.
type window struct {
	after string
	limit int
}

// parseWindow reads limit and cursor. Any value that is not exactly one of theirs is refused.
func parseWindow(u *url.URL) (window, error) {
	w := window{limit: pageItemsDefault}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return w, invalid("the query can't be read")
	}
	if values, given := query["limit"]; given {
		n, err := strconv.ParseUint(values[0], 10, 32)
		if err != nil || len(values) > 1 || n < 1 || n > pageItemsMax {
			return w, &model.FieldError{Field: "limit", Problem: "is not one whole number in its range", Advice: fmt.Sprintf("use 1 to %d", pageItemsMax)}
		}
		w.limit = int(n)
	}
	if values, given := query["cursor"]; given {
		name, ok := parseCursor(values[0])
		if !ok || len(values) > 1 {
			return w, &model.FieldError{Field: "cursor", Problem: "is none that a page here carried", Advice: "pass next_cursor of the page before, unchanged"}
		}
		w.after = name
	}
	return w, nil
}

// renderCursor is the key of the last entry shown: its JSON form in base64 without padding.
func renderCursor(name string) string {
	text, err := json.Marshal(name)
	if err != nil {
		panic("api: a name can't be rendered as JSON: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// parseCursor reads what renderCursor wrote, and nothing else: decoders forgive line breaks and spaces, so the name is
// rendered again and compared.
func parseCursor(cursor string) (name string, ok bool) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || json.Unmarshal(text, &name) != nil || !model.ValidName(name) || renderCursor(name) != cursor {
		return "", false
	}
	return name, true
}

// fill collects a page. List reads records above a name from the store; visible drops those the caller may not see
// before they are counted, so that every page but the last is full and a cursor never names a foreign entry.
func fill[R any](w window, list func(after string, limit int) ([]R, error), name func(R) string, visible func(R) bool) (Page[R], error) {
	page := Page[R]{Items: []R{}}
	for after := w.after; ; {
		rows, err := list(after, scanItems)
		if err != nil {
			return Page[R]{}, err
		}
		for _, r := range rows {
			after = name(r)
			if !visible(r) {
				continue
			}
			if len(page.Items) == w.limit {
				page.NextCursor = renderCursor(name(page.Items[w.limit-1]))
				return page, nil
			}
			page.Items = append(page.Items, r)
		}
		if len(rows) < scanItems {
			return page, nil
		}
	}
}
