// Package transport is how bytes enter and leave a node: QUIC settings, TLS policy, certificates, listeners, dialing and
// connection pools. It holds no protocol of its own; what travels in the streams belongs to package wire and its users.
//
// Three rules hold everywhere:
//
//   - TLS 1.3 or nothing. There is no unencrypted mode and no way to switch certificate verification off.
//   - Nothing here opens a file. Certificates arrive as PEM bytes; the daemon reads and watches the files.
//   - Whatever a stranger can make grow has a bound: connections in all and per address, streams per connection, bytes in
//     flight per stream and per connection, bytes taken from a datagram.
package transport
