// Package sample turns a row of logits into a token.
//
// The order of work is vLLM's: log probabilities are taken from the raw logits; then logit_bias, penalties and masks
// (bad words, minimum length, allowed ids) edit the row; temperature 0 takes the largest logit, anything else draws
// from softmax(logits / temperature) after min-p, top-k and top-p, in this order.
//
// A token depends on the logits, the parameters, the history and the position only. The weights of tokens are package
// cpu's exp32 in one fixed order of summation (docs/arithmetic.md §9), the same on every level of processor; log
// probabilities are float64, with an exponential and a logarithm written out here (math.Exp differs between processors in
// the last bit); and the random number of a position is a function of (seed, position). Ties go to the lowest id. So the
// same request gives the same tokens on every machine, whatever runs beside it and however often it was preempted.
package sample
