package kv

// Table is the block table of one request: for each cache group the blocks that hold its tokens, in token order. The
// zero value holds nothing. A Table is owned by its request and changed by Cache only; its lists only grow until the
// request is released, except that blocks left of a sliding window turn into null blocks.
type Table struct {
	groups []groupTable
}

type groupTable struct {
	blocks     []BlockID
	registered int // leading blocks that are in the prefix cache, or are null, or were found there
}

// Len returns the number of blocks in the group's list, null blocks included.
func (t *Table) Len(group int) int {
	if len(t.groups) == 0 {
		return 0
	}
	return len(t.groups[group].blocks)
}

// Blocks returns the group's list from the given index on. It is a view: valid until the table is released.
func (t *Table) Blocks(group, from int) []BlockID {
	if len(t.groups) == 0 {
		return nil
	}
	b := t.groups[group].blocks
	return b[from:len(b):len(b)]
}

// Registered returns the number of leading blocks of the group that are in the prefix cache.
func (t *Table) Registered(group int) int {
	if len(t.groups) == 0 {
		return 0
	}
	return t.groups[group].registered
}

// Empty tells whether the table holds no block.
func (t *Table) Empty() bool {
	for i := range t.groups {
		if len(t.groups[i].blocks) > 0 {
			return false
		}
	}
	return true
}

// AddRefs adds the table's references to held, indexed by block: the counterpart of Pool.Audit.
func (t *Table) AddRefs(held []int32) {
	for i := range t.groups {
		for _, b := range t.groups[i].blocks {
			if b != nullBlock {
				held[b]++
			}
		}
	}
}
