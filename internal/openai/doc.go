// Package openai is the wire form of the OpenAI API as vLLM extends it: what a request may say, what is wrong with one
// that says something else, and how answers, streams and errors are written. It knows no engine and no HTTP; the server
// and the load generator share it.
//
// Requests are decoded strictly (duplicate keys, bad UTF-8 and trailing data are faults) and leniently (unknown fields
// are ignored). A Fault names the field as a dotted path, its value and the limit. Fields whose meaning Quire does not
// offer are refused when ignoring them would change the answer, and ignored otherwise.
//
// Answers are appended to byte slices by hand: a stream writes one small frame a token, and reflection would cost more
// than the frame. A Choice or a Delta says what happened, and the same value is written in the chat or the text form.
package openai
