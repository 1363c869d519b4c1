// Package golden holds a model to recorded numbers: files of reference logits and greedy continuations, made once by an
// exact computation and compared with what this engine computes today.
//
// Two kinds of file exist. A real file ([Real]) belongs to a published GGUF model and stores, for some positions of
// one prompt, the likeliest tokens and a random sample of the others, so that the Kullback-Leibler divergence over the
// whole vocabulary can be estimated without bias. A tiny file ([Tiny]) belongs to a small random model and stores the
// logits of whole prompts in .npy files beside it. [Compare] runs either against a [Runner] and reports the figures
// and whether their bounds hold.
package golden
