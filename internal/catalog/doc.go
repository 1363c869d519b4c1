// Package catalog turns what people call a model into a file on this machine.
//
// A reference is one of three things: a name of the catalogue, such as "smollm2:135m"; a file on Hugging Face, written
// hf:org/repo/file.gguf; or a path to a .gguf file. The catalogue holds for each name the file's sha256, its size, its
// licence, and the sources it may be fetched from, which are tried in turn. Sources need not be trusted: a file takes
// its place only when its sha256 is right.
//
// The cache folder holds one file per sha256, whatever the number of names it was pulled under:
//
//	<sha256>.gguf              a whole, verified file; it appears by rename
//	<sha256>.json              its names, licence and source
//	<sha256>.lock              locked while somebody pulls it, so that two processes never write the same file
//	<sha256>.hf.part           what has arrived so far, by source; a pull that was interrupted goes on from here
//	<sha256>.hf.part.json      where the part came from, and up to where it is sound
//	<sha256>.pip.part-wheel-*  a folder for one wheel at a time
package catalog
