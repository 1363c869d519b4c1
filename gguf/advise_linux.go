package gguf

import "golang.org/x/sys/unix"

// Forget tells the system that a tensor's bytes will not be read soon: the whole pages among them stop counting as
// memory of this process. Reading them again works, from the file. Owned by whoever opened the file.
func (f *File) Forget(t *Tensor) {
	if f.mapping == nil || len(t.Data) == 0 {
		return
	}
	const page = 4096 // or a multiple: then the call does nothing for some tensors
	from := (int(f.DataStart) + int(t.Offset) + page - 1) / page * page
	to := (int(f.DataStart) + int(t.Offset) + len(t.Data)) / page * page
	if from < to {
		_ = unix.Madvise(f.mapping[from:to], unix.MADV_DONTNEED) // advice only
	}
}
