package chat

import (
	"strings"
	"unicode/utf8"
)

// attribute is jinja2's obj.name: a Python attribute if there is one, else an item.
func (in *interp) attribute(obj Value, name string) (Value, error) {
	v, ok, err := in.pythonAttribute(obj, name)
	if err != nil || ok {
		return v, err
	}
	if v, ok, err := in.subscript(obj, Str(name)); err != nil || ok {
		return v, err
	}
	return undefined{obj: obj, name: Str(name)}, nil
}

// item is jinja2's obj[index]: an item if there is one, else for a string index a Python attribute.
func (in *interp) item(obj, index Value) (Value, error) {
	if v, ok, err := in.subscript(obj, index); err != nil || ok {
		return v, err
	}
	if name, ok := asString(index); ok {
		if v, ok, err := in.pythonAttribute(obj, name); err != nil || ok {
			return v, err
		}
	}
	return undefined{obj: obj, name: index}, nil
}

// pythonAttribute is Python's getattr as the immutable sandbox allows it; ok is false where there is no such
// attribute. What the sandbox forbids is a value that fails with a SecurityError when it is used.
func (in *interp) pythonAttribute(obj Value, name string) (v Value, ok bool, err error) {
	if strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") && len(name) > 4 {
		if ns, isNS := obj.(*namespace); isNS {
			v, ok := ns.attrs.Get(name)
			return v, ok && name != "__class__", nil
		}
		if dunderAttribute(obj, name) {
			return unsafeAttribute(obj, name), true, nil
		}
		return nil, false, nil
	}
	switch obj := obj.(type) {
	case undefined:
		return nil, false, obj.error()
	case *namespace:
		v, ok := obj.attrs.Get(name)
		if ok && strings.HasPrefix(name, "_") {
			return unsafeAttribute(obj, name), true, nil
		}
		return v, ok, nil
	case *loopContext:
		return obj.attribute(name)
	case *group:
		switch name {
		case "grouper":
			return obj.key, true, nil
		case "list":
			return obj.list, true, nil
		}
	case *macroValue:
		return obj.attribute(name)
	case *cycler:
		if name == "current" {
			return obj.items[obj.pos], true, nil
		}
	case rangeValue:
		switch name {
		case "start":
			return Int(obj.start), true, nil
		case "stop":
			return Int(obj.stop), true, nil
		case "step":
			return Int(obj.step), true, nil
		}
	}
	if v, ok := numberAttribute(obj, name); ok {
		return v, true, nil
	}
	if mutates(obj, name) {
		return unsafeAttribute(obj, name), true, nil
	}
	if m := in.env.method(obj, name); m != nil {
		return &function{native: m, self: obj}, true, nil
	}
	return nil, false, nil
}

// numberAttribute are the data attributes of numbers.
func numberAttribute(obj Value, name string) (Value, bool) {
	if !isNumber(obj) {
		return nil, false
	}
	if b, ok := obj.(Bool); ok {
		i, _ := asInt(b)
		obj = Int(i)
	}
	_, float := obj.(Float)
	switch {
	case name == "real", name == "numerator" && !float:
		return obj, true
	case name == "imag" && float:
		return Float(0), true
	case name == "imag":
		return Int(0), true
	case name == "denominator" && !float:
		return Int(1), true
	}
	return nil, false
}

func unsafeAttribute(obj Value, name string) Value {
	return undefined{
		hint: "access to attribute " + reprString(name) + " of '" + obj.typeName() + "' object is unsafe.",
		obj:  obj, name: Str(name), typ: "SecurityError",
	}
}

// dunderAttribute tells whether every Python object of the kind has the special attribute.
func dunderAttribute(obj Value, name string) bool {
	if _, ok := obj.(undefined); ok && name != "__class__" {
		return false
	}
	switch name {
	case "__class__", "__doc__", "__init__", "__repr__", "__str__", "__hash__", "__eq__", "__ne__", "__new__", "__dir__",
		"__reduce__", "__reduce_ex__", "__getattribute__", "__setattr__", "__delattr__", "__format__", "__sizeof__",
		"__subclasshook__", "__init_subclass__", "__lt__", "__le__", "__gt__", "__ge__", "__getstate__":
		return true
	case "__len__", "__getitem__", "__iter__", "__contains__":
		switch obj.(type) {
		case Str, markup, *List, tuple, *group, *Dict, rangeValue:
			return true
		}
	case "__globals__", "__code__", "__closure__", "__dict__", "__module__":
		_, ok := obj.(*macroValue)
		return ok && (name == "__dict__" || name == "__module__")
	}
	return false
}

// mutates tells whether name is a method that changes obj in place, which the sandbox forbids.
func mutates(obj Value, name string) bool {
	switch obj.(type) {
	case *List:
		switch name {
		case "append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove":
			return true
		}
	case *Dict:
		switch name {
		case "clear", "pop", "popitem", "setdefault", "update":
			return true
		}
	}
	return false
}

// attribute are the data attributes of a macro.
func (m *macroValue) attribute(name string) (v Value, ok bool, err error) {
	switch name {
	case "name":
		if m.def.name == "" {
			return None{}, true, nil
		}
		return Str(m.def.name), true, nil
	case "arguments":
		names := tuple{}
		for _, p := range m.def.params {
			names = append(names, Str(p.name))
		}
		return names, true, nil
	case "caller":
		return Bool(m.def.caller >= 0), true, nil
	case "catch_kwargs":
		return Bool(m.def.kwargs >= 0), true, nil
	case "catch_varargs":
		return Bool(m.def.varargs >= 0), true, nil
	}
	return nil, false, nil
}

// subscript is Python's obj[index]; ok is false where Python raises a TypeError or LookupError.
func (in *interp) subscript(obj, index Value) (v Value, ok bool, err error) {
	switch obj := obj.(type) {
	case *Dict:
		v, ok, err := in.getItem(obj, index)
		if errorType(err) == "TypeError" {
			return nil, false, nil
		}
		return v, ok, err
	case undefined:
		return nil, false, obj.error()
	case *List:
		return indexed(obj.Items, index)
	case tuple:
		return indexed(obj, index)
	case *group:
		return indexed([]Value{obj.key, obj.list}, index)
	case Str, markup:
		s, _ := asString(obj)
		i, isInt := asInt(index)
		if !isInt {
			return nil, false, nil
		}
		if err := in.scan(len(s)); err != nil {
			return nil, false, err
		}
		c, ok := runeAt(s, i)
		return like(obj, c), ok, nil
	case bytesValue:
		i, isInt := asInt(index)
		if i < 0 {
			i += int64(len(obj))
		}
		if !isInt || i < 0 || i >= int64(len(obj)) {
			return nil, false, nil
		}
		return Int(obj[i]), true, nil
	case rangeValue:
		i, isInt := asInt(index)
		if i < 0 {
			i += obj.len()
		}
		if !isInt || i < 0 || i >= obj.len() {
			return nil, false, nil
		}
		return obj.at(i), true, nil
	}
	return nil, false, nil
}

func indexed(items []Value, index Value) (Value, bool, error) {
	i, ok := asInt(index)
	if i < 0 {
		i += int64(len(items))
	}
	if !ok || i < 0 || i >= int64(len(items)) {
		return nil, false, nil
	}
	return items[i], true, nil
}

// runeAt is the i-th code point of s, counted from the end where i is negative.
func runeAt(s string, i int64) (string, bool) {
	n := int64(utf8.RuneCountInString(s))
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return "", false
	}
	from := runeOffset(s, int(i))
	_, size := utf8.DecodeRuneInString(s[from:])
	return s[from : from+size], true
}

// runeOffset is the byte offset of the i-th code point of s.
func runeOffset(s string, i int) int {
	for at := range s {
		if i == 0 {
			return at
		}
		i--
	}
	return len(s)
}

// slice is Python's obj[start:stop:step].
func (in *interp) slice(obj Value, bounds [3]Value) (Value, error) {
	if u, ok := obj.(undefined); ok {
		return nil, u.error()
	}
	switch obj.(type) {
	case Str, markup, bytesValue, *List, tuple, *group, rangeValue:
	case *Dict:
		return nil, typeErrorf("unhashable type: 'slice'")
	default:
		return nil, typeErrorf("'%s' object is not subscriptable", obj.typeName())
	}
	n, err := in.length(obj)
	if err != nil {
		return nil, err
	}
	start, stop, step, err := sliceBounds(bounds, n)
	if err != nil {
		return nil, err
	}
	count := rangeValue{start, stop, step}.len()
	switch obj := obj.(type) {
	case *List:
		items, err := in.sliceItems(obj.Items, start, step, count)
		return &List{items}, err
	case tuple:
		items, err := in.sliceItems(obj, start, step, count)
		return tuple(items), err
	case *group:
		items, err := in.sliceItems([]Value{obj.key, obj.list}, start, step, count)
		return tuple(items), err
	case rangeValue:
		return rangeValue{obj.start + start*obj.step, obj.start + stop*obj.step, obj.step * step}, nil
	case bytesValue:
		var b strings.Builder
		for i := range count {
			b.WriteByte(obj[start+i*step])
		}
		return bytesValue(b.String()), in.build(count)
	}
	s, _ := asString(obj)
	cut, err := in.sliceString(s, start, step, count)
	return like(obj, cut), err
}

func (in *interp) sliceItems(items []Value, start, step, count int64) ([]Value, error) {
	if err := in.build(count * elementBytes); err != nil {
		return nil, err
	}
	out := make([]Value, count)
	for i := range out {
		out[i] = items[start+int64(i)*step]
	}
	return out, nil
}

func (in *interp) sliceString(s string, start, step, count int64) (string, error) {
	if count == 0 {
		return "", nil
	}
	if step == 1 {
		from := runeOffset(s, int(start))
		return s[from : from+runeOffset(s[from:], int(count))], in.scan(len(s))
	}
	if err := in.build(int64(len(s)) * 4); err != nil {
		return "", err
	}
	runes := []rune(s)
	out := make([]rune, count)
	for i := range out {
		out[i] = runes[start+int64(i)*step]
	}
	return string(out), nil
}

// sliceBounds turns the parts of a slice of n items into the range of the indices it takes.
func sliceBounds(bounds [3]Value, n int64) (start, stop, step int64, err error) {
	step = 1
	if _, none := bounds[2].(None); !none {
		if step, err = sliceIndex(bounds[2]); err != nil {
			return 0, 0, 0, err
		}
		if step == 0 {
			return 0, 0, 0, valueErrorf("slice step cannot be zero")
		}
	}
	low, high := int64(0), n // the values that an index is cut off to
	if step < 0 {
		low, high = -1, n-1
	}
	limit := func(v Value, def int64) (int64, error) {
		if _, none := v.(None); none {
			return def, nil
		}
		i, err := sliceIndex(v)
		if err != nil {
			return 0, err
		}
		if i < 0 {
			i += n
		}
		return max(low, min(high, i)), nil
	}
	first, last := low, high
	if step < 0 {
		first, last = high, low
	}
	if start, err = limit(bounds[0], first); err != nil {
		return 0, 0, 0, err
	}
	stop, err = limit(bounds[1], last)
	return start, stop, step, err
}

func sliceIndex(v Value) (int64, error) {
	const far = 1 << 40 // further than any sequence is long
	if b, ok := v.(bigInt); ok {
		return int64(b.i.Sign()) * far, nil
	}
	i, ok := asInt(v)
	if !ok {
		return 0, typeErrorf("slice indices must be integers or None or have an __index__ method")
	}
	return max(-far, min(far, i)), nil
}
