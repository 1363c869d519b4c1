package gguf

import "github.com/quire-ai/quire/internal/tensor"

// DType is the number format of a tensor, numbered as ggml_type. Its methods give the name, the block size, and
// whether Float32s can read it.
type DType = tensor.DType

// The formats that Float32s reads. Others are listed with their name and size where these are known.
const (
	F32  = tensor.F32
	F16  = tensor.F16
	BF16 = tensor.BF16
	Q4_0 = tensor.Q4_0
	Q4_1 = tensor.Q4_1
	Q5_0 = tensor.Q5_0
	Q5_1 = tensor.Q5_1
	Q8_0 = tensor.Q8_0
	Q4_K = tensor.Q4_K
	Q5_K = tensor.Q5_K
	Q6_K = tensor.Q6_K

	IQ4_NL = tensor.IQ4_NL
	MXFP4  = tensor.MXFP4
)
