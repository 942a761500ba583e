package sessioncore

import (
	"bytes"
	"encoding/json"

	"github.com/felixd/felixd/wire"
)

// peekPublish looks into a JSON text that does not decode, as far as it can be followed: which kind of request it was to be,
// and whether it asked for an answer. A publish whose wish cannot be read counts as one that wants none, because silence is the
// only reply that cannot be mistaken.
func peekPublish(payload []byte) (kind wire.RequestKind, asksAnswer bool) {
	d := json.NewDecoder(bytes.NewReader(payload))
	if opening, err := d.Token(); err != nil || opening != json.Delim('{') {
		return wire.KindUnknown, false
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		var word string
		isText := json.Unmarshal(value, &word) == nil // null leaves it empty
		switch name {
		case "type":
			kind = wire.KindOfType(word)
		case "ack":
			asksAnswer = !isText || word != "" && word != wire.AckNone.String()
		}
	}
	return kind, asksAnswer
}
