// Package pressure tests a whole server on a KV cache far too small for its clients, and gives a verdict.
//
// Run starts a server of its own on the loopback, with a cache of 4,096 tokens, and lets thirty clients ask at once, half
// of them for a stream. The workloads are those in which other servers were seen to hang, to drop requests or to answer
// with another request's text (mistral.rs PR #2043). A request must get exactly one answer, of the length asked for, and
// the very tokens that it gets when it runs alone.
//
// What is checked, as far as it can be seen from outside and through the engine's observer:
//
//  1. Every request gets one terminal answer: 200 with the tokens asked for, or a 4xx before any token. Streams end with
//     a finish_reason and [DONE].
//  2. Tokens and text equal those of the same request alone.
//  3. Requests of equal shape end in the order in which they came (but for the wait for KV from a tier), none is preempted
//     more than six times, and the tokens computed again are at most twice those of the plainest scheduler (reference).
//  4. Afterwards nothing is held: no block, no request, no goroutine; and the idle process does not compute.
//  5. The counter of preemptions, the log and what was observed agree; no line of the log is there more than ten times.
//  6. Every step with work computes a token, and /health never says stalled.
//  7. All of it again in the second and third wave.
//  8. The scheduler alone, given the same requests at the same steps, preempts as often.
//  9. The throughput line is logged while there is work.
package pressure
