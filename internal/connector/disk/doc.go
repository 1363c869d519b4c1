// Package disk keeps chunks of KV in a folder, across restarts.
//
//	lock           held by the process that uses the folder; a second one is refused
//	index.log      which slot holds which chunk: a header and records of 48 bytes, each with its checksum
//	slab-0000.kv   slots of one chunk each, page-aligned; preallocated a slab at a time, as they are needed
//
// Nothing here has to be true for answers to be right. The index is a hint: a chunk says itself what it is, and whoever reads
// it checks that (package chunk). So no write waits for the platter, a process may be killed between any two system calls,
// and what is half-written, stale or damaged is a miss and is removed. If the index is lost the chunks' headers are
// scanned.
//
// A chunk is written in the order: record that the slot's old chunk is gone, write the slot, record the new one. The slot
// used longest ago is taken when all are full; a slot that is being read is not.
package disk
