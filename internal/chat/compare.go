package chat

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strings"
)

// compare is Python's left op right for == != < <= > >= in notin.
func (in *interp) compare(op string, left, right Value) (bool, error) {
	switch op {
	case "==":
		return in.equal(left, right)
	case "!=":
		same, err := in.equal(left, right)
		return !same, err
	case "in":
		return in.contains(right, left)
	case "notin":
		found, err := in.contains(right, left)
		return !found, err
	}
	return in.ordered(op, left, right)
}

// equal is Python's a == b.
func (in *interp) equal(a, b Value) (bool, error) {
	if err := in.enter(); err != nil {
		return false, err
	}
	defer in.leave()
	if isNumber(a) && isNumber(b) {
		c, ok := compareNumbers(a, b)
		return ok && c == 0, nil
	}
	if s, ok := asString(a); ok {
		t, ok := asString(b)
		if !ok || len(s) != len(t) {
			return false, nil
		}
		return s == t, in.scan(len(s))
	}
	switch a := a.(type) {
	case None:
		_, ok := b.(None)
		return ok, nil
	case undefined:
		_, ok := b.(undefined)
		return ok, nil
	case bytesValue:
		bb, ok := b.(bytesValue)
		return ok && a == bb, nil
	case *List:
		bl, ok := b.(*List)
		if !ok {
			return false, nil
		}
		return in.equalItems(a.Items, bl.Items)
	case tuple, *group:
		at, _ := asTuple(a)
		bt, ok := asTuple(b)
		if !ok {
			return false, nil
		}
		return in.equalItems(at, bt)
	case *Dict:
		bd, ok := b.(*Dict)
		if !ok {
			return false, nil
		}
		return in.equalDicts(a, bd)
	case rangeValue:
		br, ok := b.(rangeValue)
		return ok && equalRanges(a, br), nil
	case dictView:
		bv, ok := b.(dictView)
		if !ok || a.kind == "values" || bv.kind == "values" {
			return ok && a == bv && a.kind != "values", nil
		}
		return in.equalViews(a, bv)
	}
	return a == b, nil
}

func asTuple(v Value) ([]Value, bool) {
	switch v := v.(type) {
	case tuple:
		return v, true
	case *group:
		return []Value{v.key, v.list}, true
	}
	return nil, false
}

func (in *interp) equalItems(a, b []Value) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	for i := range a {
		if same, err := in.equal(a[i], b[i]); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func (in *interp) equalDicts(a, b *Dict) (bool, error) {
	if a.Len() != b.Len() {
		return false, nil
	}
	for k, v := range a.All {
		w, ok, err := in.getItem(b, k)
		if err != nil || !ok {
			return false, err
		}
		if same, err := in.equal(v, w); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func (in *interp) equalViews(a, b dictView) (bool, error) {
	if a.dict.Len() != b.dict.Len() {
		return false, nil
	}
	next := a.iterate()
	for {
		v, ok, _ := next()
		if !ok {
			return true, nil
		}
		if found, err := in.contains(b, v); err != nil || !found {
			return false, err
		}
	}
}

func equalRanges(a, b rangeValue) bool {
	n := a.len()
	return n == b.len() && (n == 0 || a.start == b.start && (n == 1 || a.step == b.step))
}

// compareNumbers orders two numbers exactly; ok is false when one is not a number (NaN).
func compareNumbers(a, b Value) (int, bool) {
	fa, aFloat := a.(Float)
	fb, bFloat := b.(Float)
	if aFloat && math.IsNaN(float64(fa)) || bFloat && math.IsNaN(float64(fb)) {
		return 0, false
	}
	if aFloat && bFloat {
		return cmp.Compare(fa, fb), true
	}
	if !aFloat && !bFloat {
		ia, aSmall := asInt(a)
		ib, bSmall := asInt(b)
		if aSmall && bSmall {
			return cmp.Compare(ia, ib), true
		}
		ba, _ := asBig(a)
		bb, _ := asBig(b)
		return ba.Cmp(bb), true
	}
	if aFloat {
		c := compareIntFloat(b, float64(fa))
		return -c, true
	}
	return compareIntFloat(a, float64(fb)), true
}

func compareIntFloat(a Value, f float64) int {
	if math.IsInf(f, 0) {
		return -int(math.Copysign(1, f))
	}
	i, _ := asBig(a)
	return new(big.Float).SetInt(i).Cmp(big.NewFloat(f))
}

// ordered is Python's a < b and its kin.
func (in *interp) ordered(op string, a, b Value) (bool, error) {
	c, ok, err := in.order(a, b, op)
	if err != nil || !ok {
		return false, err
	}
	switch op {
	case "<":
		return c < 0, nil
	case "<=":
		return c <= 0, nil
	case ">":
		return c > 0, nil
	}
	return c >= 0, nil
}

// order compares a and b; ok is false where Python finds them unordered (NaN). op is only used in the error.
func (in *interp) order(a, b Value, op string) (c int, ok bool, err error) {
	if err := in.enter(); err != nil {
		return 0, false, err
	}
	defer in.leave()
	if u, ok := a.(undefined); ok {
		return 0, false, u.error()
	}
	if u, ok := b.(undefined); ok {
		return 0, false, u.error()
	}
	if isNumber(a) && isNumber(b) {
		c, ok := compareNumbers(a, b)
		return c, ok, nil
	}
	if s, ok := asString(a); ok {
		if t, ok := asString(b); ok {
			// UTF-8 sorts as its code points do.
			return strings.Compare(s, t), true, in.scan(min(len(s), len(t)))
		}
	}
	if l, ok := a.(*List); ok {
		if r, ok := b.(*List); ok {
			return in.orderItems(l.Items, r.Items, op)
		}
	}
	if l, ok := asTuple(a); ok {
		if r, ok := asTuple(b); ok {
			return in.orderItems(l, r, op)
		}
	}
	if l, ok := a.(bytesValue); ok {
		if r, ok := b.(bytesValue); ok {
			return strings.Compare(string(l), string(r)), true, nil
		}
	}
	return 0, false, typeErrorf("'%s' not supported between instances of '%s' and '%s'", op, a.typeName(), b.typeName())
}

func (in *interp) orderItems(a, b []Value, op string) (int, bool, error) {
	for i := range min(len(a), len(b)) {
		same, err := in.equal(a[i], b[i])
		if err != nil {
			return 0, false, err
		}
		if !same {
			return in.order(a[i], b[i], op)
		}
	}
	return cmp.Compare(len(a), len(b)), true, nil
}

// contains is Python's v in seq.
func (in *interp) contains(seq, v Value) (bool, error) {
	switch seq := seq.(type) {
	case Str, markup:
		text, _ := asString(seq)
		s, ok := asString(v)
		if !ok {
			return false, typeErrorf("'in <string>' requires string as left operand, not %s", v.typeName())
		}
		return strings.Contains(text, s), in.scan(len(text))
	case *Dict:
		_, ok, err := in.getItem(seq, v)
		return ok, err
	case rangeValue:
		if i, ok := asInt(v); ok {
			return rangeHas(seq, i), nil
		}
	case dictView:
		if seq.kind == "keys" {
			_, ok, err := in.getItem(seq.dict, v)
			return ok, err
		}
	}
	next, err := in.iterate(seq)
	if err != nil {
		if errorType(err) == "TypeError" {
			return false, typeErrorf("argument of type '%s' is not iterable", seq.typeName())
		}
		return false, err
	}
	for {
		item, ok, err := next()
		if err != nil || !ok {
			return false, err
		}
		same, err := in.same(item, v)
		if err != nil || same {
			return same, err
		}
	}
}

// same is Python's `a is b or a == b`, with which containers look for an item.
func (in *interp) same(a, b Value) (bool, error) {
	if _, isStr := asString(a); !isStr && identical(a, b) {
		return true, nil
	}
	return in.equal(a, b)
}

func rangeHas(r rangeValue, i int64) bool {
	n := r.len()
	if n == 0 || r.step == 0 {
		return false
	}
	low, high := r.start, r.start+(n-1)*r.step
	if low > high {
		low, high = high, low
	}
	return i >= low && i <= high && (i-r.start)%r.step == 0
}

// identical is Python's a is b, as far as it does not depend on what Python happens to share.
func identical(a, b Value) bool {
	switch a := a.(type) {
	case tuple:
		bt, ok := b.(tuple)
		return ok && len(a) == len(bt) && (len(a) == 0 || &a[0] == &bt[0])
	case *List:
		bl, ok := b.(*List)
		return ok && a == bl
	case undefined:
		return false
	case Float:
		bf, ok := b.(Float)
		return ok && (a == bf || math.IsNaN(float64(a)) && math.IsNaN(float64(bf)))
	case bigInt:
		bb, ok := b.(bigInt)
		return ok && a.i.Cmp(bb.i) == 0
	}
	if _, ok := b.(tuple); ok {
		return false
	}
	if _, ok := b.(undefined); ok {
		return false
	}
	return a == b
}

// sortBy sorts items by their keys, which stay beside them, as Python's sorted does: stable, comparing with <.
func (in *interp) sortBy(items, keys []Value, reverse bool) ([]Value, error) {
	at := make([]int, len(items))
	for i := range at {
		at[i] = i
	}
	var failed error
	slices.SortStableFunc(at, func(i, j int) int {
		if failed != nil {
			return 0
		}
		if reverse {
			i, j = j, i
		}
		less, err := in.ordered("<", keys[i], keys[j])
		if err != nil {
			failed = err
			return 0
		}
		if less {
			return -1
		}
		more, err := in.ordered("<", keys[j], keys[i])
		if err != nil {
			failed = err
			return 0
		}
		if more {
			return 1
		}
		return 0
	})
	if failed != nil {
		return nil, failed
	}
	out := make([]Value, len(items))
	for i, from := range at {
		out[i] = items[from]
	}
	return out, in.build(int64(len(items)) * elementBytes)
}
