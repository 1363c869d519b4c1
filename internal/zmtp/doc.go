// Package zmtp speaks the wire protocol of ZeroMQ, ZMTP 3.0 (RFC 23 of rfc.zeromq.org), as far as a publisher and an
// answerer need it: the sockets PUB and ROUTER, with the NULL mechanism, over TCP and Unix sockets.
//
// A [Socket] holds an endpoint. It accepts peers there, or connects to one and connects again when it is lost, shakes
// hands, and gives each peer as a [Conn] to a function of its user, in a goroutine of its own. What a message means, and
// what becomes of it when a peer does not read, is the user's business: here nothing is queued.
//
//	greeting   ff 00×8 7f │ 03 00 │ "NULL" 00×16 │ 00 │ 00×31              64 bytes, both ways
//	command    04 size body, 06 size×8 body                               body: length of name, name, data
//	frame      flags size body                                            flags: 01 more, 02 size has 8 bytes
//
// Subscriptions come as messages, 01 prefix and 00 prefix, or as the commands of ZMTP 3.1, SUBSCRIBE and CANCEL; a reader
// sees messages. PING is answered. A peer that is not of this protocol, is of another kind of socket, or sends more than the
// bounds allow is cut off.
package zmtp
