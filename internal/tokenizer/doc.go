// Package tokenizer turns text into the token ids of one model and back, from the metadata of the model's GGUF file
// alone.
//
// Two families of vocabulary are known. Byte-level BPE (tokenizer.ggml.model = gpt2) first cuts the text into words by
// the rules that tokenizer.ggml.pre names, then merges the bytes of each word in the order of the merge list.
// SentencePiece style (tokenizer.ggml.model = llama) writes spaces as U+2581 and merges characters in the order of the
// tokens' scores; what is in no token is spelled in byte tokens. A vocabulary or a set of rules that is not known is
// refused by name: a guess would give a model text it was never trained on, with no error to show for it.
//
// The ids are those of llama.cpp for the same file, with one exception: bytes that are not UTF-8 are kept, byte by byte,
// where llama.cpp puts U+FFFD in their place. So Encode followed by Decode gives back every byte.
//
// # How text is encoded
//
//  1. partition (special.go): special tokens found in the text become ids; what lies between are fragments.
//  2. scan (scan.go), byte-level BPE only: a fragment is cut into words by a hand-written scanner. SentencePiece text is
//     cut where no token of the vocabulary reaches across (spm.go).
//  3. merge (merge.go): the best pair of neighbours is joined until none is left. A word that is a token by itself
//     skips this step: see wordIndex.
//
// All of it is linear in the length of the text, up to the logarithm of a heap for a very long word, whatever the text.
//
// A Tokenizer does not change after New and may be used by many goroutines at once. A Detokenizer belongs to one.
package tokenizer
