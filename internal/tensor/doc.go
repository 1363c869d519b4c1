// Package tensor names the number formats that model files store weights in, and turns them into float32.
//
// A format is a sequence of blocks. A block stands for BlockElements numbers that lie next to each other in one row
// and takes BlockBytes bytes; rows are whole blocks, so a row of a matrix starts on a block. F32, F16 and BF16 are
// blocks of one.
//
// Dequantize is the meaning of each format: the values it gives are exact up to the single rounding that formats with
// an offset need, so every implementation that follows the format's definition gives the same bits. Faster code is
// tested against it.
package tensor
