package chat

// listFilters cut and turn sequences.
func listFilters() map[string]*native {
	return map[string]*native{
		"batch":   fn("value linecount fill_with?", filterBatch),
		"first":   fn("seq", filterFirst),
		"last":    fn("seq", filterLast),
		"list":    fn("value", filterList),
		"reverse": fn("value", filterReverse),
		"slice":   fn("value slices fill_with?", filterSlice),
	}
}

func filterFirst(in *interp, a *arguments) (Value, error) {
	next, err := in.iterate(a.v[0])
	if err != nil {
		return nil, err
	}
	v, ok, err := next()
	if !ok {
		v = undefined{hint: "No first item, sequence was empty."}
	}
	return v, err
}

func filterLast(in *interp, a *arguments) (Value, error) {
	g, err := in.reversed(a.v[0])
	if err != nil {
		return nil, err
	}
	v, ok, err := g.next()
	if !ok {
		v = undefined{hint: "No last item, sequence was empty."}
	}
	return v, err
}

func filterList(in *interp, a *arguments) (Value, error) {
	items, err := in.collect(a.v[0])
	return &List{items}, err
}

func filterReverse(in *interp, a *arguments) (Value, error) {
	if _, ok := asString(a.v[0]); ok {
		return in.slice(a.v[0], [3]Value{None{}, None{}, Int(-1)})
	}
	g, err := in.reversed(a.v[0])
	if err == nil {
		return g, nil
	}
	if errorType(err) != "TypeError" {
		return nil, err
	}
	items, err := in.collect(a.v[0])
	if err != nil {
		if errorType(err) == "TypeError" {
			return nil, runtimeErrorf("FilterArgumentError", "argument must be iterable")
		}
		return nil, err
	}
	for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
		items[i], items[j] = items[j], items[i]
	}
	return &List{items}, nil
}

func filterBatch(in *interp, a *arguments) (Value, error) {
	var next iterator
	size := a.v[1]
	fill := a.or(2, None{})
	var ahead []Value // the first item of the next batch
	return &generator{typ: "generator", next: func() (Value, bool, error) {
		if next == nil {
			var err error
			if next, err = in.iterate(a.v[0]); err != nil {
				return nil, false, err
			}
		}
		batch := ahead
		ahead = nil
		for {
			item, ok, err := next()
			if err != nil {
				return nil, false, err
			}
			if !ok {
				break
			}
			full, err := in.equal(Int(len(batch)), size)
			if err != nil {
				return nil, false, err
			}
			if err := in.build(elementBytes); err != nil {
				return nil, false, err
			}
			if full {
				ahead = []Value{item}
				return &List{batch}, true, nil
			}
			batch = append(batch, item)
		}
		if len(batch) == 0 {
			return nil, false, nil
		}
		filled, err := in.fillBatch(batch, size, fill)
		return &List{filled}, true, err
	}}, nil
}

// fillBatch makes the last batch as long as the others.
func (in *interp) fillBatch(batch []Value, size, fill Value) ([]Value, error) {
	if _, none := fill.(None); none {
		return batch, nil
	}
	less, err := in.ordered("<", Int(len(batch)), size)
	if err != nil || !less {
		return batch, err
	}
	n, err := wantInt(size)
	if err != nil {
		return nil, err
	}
	missing := n - int64(len(batch))
	if missing > in.limits.BuiltBytes {
		return nil, &LimitError{What: "bytes built", Limit: in.limits.BuiltBytes}
	}
	if err := in.build(missing * elementBytes); err != nil {
		return nil, err
	}
	for range missing {
		batch = append(batch, fill)
	}
	return batch, nil
}

func filterSlice(in *interp, a *arguments) (Value, error) {
	var items []Value
	var each, extra, slices, number, offset int64
	fill := a.or(2, None{})
	start := func() error {
		var err error
		if items, err = in.collect(a.v[0]); err != nil {
			return err
		}
		if slices, err = wantInt(a.v[1]); err != nil {
			return err
		}
		if slices == 0 {
			return zeroDivision("integer division or modulo by zero")
		}
		if slices < 0 {
			slices = 0
			return nil
		}
		each, extra = int64(len(items))/slices, int64(len(items))%slices
		return nil
	}
	return &generator{typ: "generator", next: func() (Value, bool, error) {
		if items == nil {
			if err := start(); err != nil {
				return nil, false, err
			}
		}
		if number >= slices {
			return nil, false, nil
		}
		from := offset + number*each
		if number < extra {
			offset++
		}
		end := offset + (number+1)*each
		part := append([]Value{}, items[from:end]...)
		if _, none := fill.(None); !none && number >= extra {
			part = append(part, fill)
		}
		number++
		return &List{part}, true, in.build(int64(len(part)+1) * elementBytes)
	}}, nil
}
