// Package rawquic is the yardstick of felixctl bench: a server that moves bytes over the same sockets, the same QUIC settings and the
// same certificates as a broker (package transport), and does nothing else. What a broker reaches of its figures is what the broker
// itself costs.
//
// A stream begins with an Order of OrderBytes, which says what the server does with it:
//
//   - Sink reads and discards. With a unit it answers one frame of AckBytes for each unit of bytes that it has read, which is what an
//     acknowledged publish costs at the least.
//   - Echo sends back every byte, in one goroutine: read, write.
//   - Relay passes the bytes on to each subscriber of its group. With one subscriber it is one goroutine that reads and writes; with
//     more, one that reads and one for each subscriber that writes, over chunks they share.
//   - Subscribe joins a group; the server says so with one byte, and then sends what the relay of that group reads.
//
// Fairness. Nothing here is slower than it has to be: reads and writes go through buffers of 64 KiB, which is what a broker and its
// client join their own writes up to; no byte is looked at; a chunk is shared by all subscribers and not copied for each; nothing is
// locked per chunk. Nothing is quicker than a broker could be either: a stream is read by one goroutine, and the bytes pass through
// the process once. A slow subscriber holds up its relay, so nothing is lost.
package rawquic
