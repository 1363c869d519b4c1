package chat

import (
	"math"
	"math/big"
)

// Value is one of Python's values, as far as templates can meet them: [None], [Bool], [Int], [Float], [Str], *[List],
// *[Dict] and what the evaluator makes itself. Values given to a template are only read.
type Value interface {
	// typeName is the name of the Python type, as in error messages.
	typeName() string
}

// None is Python's None, JSON's null.
type None struct{}

// Bool is a Python bool. Like there, True equals 1 and counts as 1 in arithmetic.
type Bool bool

// Int is a Python int that fits 64 bits; longer ones are a bigInt.
type Int int64

// Float is a Python float.
type Float float64

// Str is a Python str. It is counted and cut by code point.
type Str string

// List is a Python list.
type List struct{ Items []Value }

// bigInt is a Python int that does not fit an Int. It is never changed after it is made.
type bigInt struct{ i *big.Int }

// markup is a str that is marked safe for HTML: strings joined to it are escaped first.
type markup string

// bytesValue is a Python bytes.
type bytesValue string

// tuple is a Python tuple.
type tuple []Value

// group is what the groupby filter makes: a tuple with two named parts.
type group struct {
	key  Value
	list *List
}

// undefined stands for what is not there. It prints as nothing; most other uses are errors.
type undefined struct {
	hint string // replaces the message
	obj  Value  // what the name was looked up in, or nil
	name Value
	typ  string // the error when it is used; empty is UndefinedError
}

// rangeValue is a Python range.
type rangeValue struct{ start, stop, step int64 }

// generator is a Python iterator: it can be gone through once. The type name is what Python calls it.
type generator struct {
	typ  string
	next iterator
}

// namespace is jinja2's namespace object, the only thing a template can change.
type namespace struct{ attrs *Dict }

// dictView is what keys(), values() and items() of a dict return.
type dictView struct {
	kind string // keys, values or items
	dict *Dict
}

// cycler and joiner are what the functions of those names make.
type (
	cycler struct {
		items []Value
		pos   int
	}
	joiner struct {
		sep  Value
		used bool
	}
)

// function is something that can be called: a builtin or a method with its object.
type function struct {
	native *native
	self   Value // nil for a builtin
}

// macroValue is a macro with the frame it was defined in.
type macroValue struct {
	def   *macroDef
	frame *frame
}

func (None) typeName() string         { return "NoneType" }
func (Bool) typeName() string         { return "bool" }
func (Int) typeName() string          { return "int" }
func (bigInt) typeName() string       { return "int" }
func (Float) typeName() string        { return "float" }
func (Str) typeName() string          { return "str" }
func (markup) typeName() string       { return "Markup" }
func (bytesValue) typeName() string   { return "bytes" }
func (*List) typeName() string        { return "list" }
func (tuple) typeName() string        { return "tuple" }
func (*group) typeName() string       { return "_GroupTuple" }
func (*Dict) typeName() string        { return "dict" }
func (undefined) typeName() string    { return "Undefined" }
func (rangeValue) typeName() string   { return "range" }
func (g *generator) typeName() string { return g.typ }
func (*namespace) typeName() string   { return "Namespace" }
func (v dictView) typeName() string   { return "dict_" + v.kind }
func (*cycler) typeName() string      { return "Cycler" }
func (*joiner) typeName() string      { return "Joiner" }
func (*macroValue) typeName() string  { return "Macro" }
func (f *function) typeName() string {
	if f.self == nil {
		return "function"
	}
	return "builtin_function_or_method"
}

// error is what happens when u is used for more than printing.
func (u undefined) error() error {
	typ := u.typ
	if typ == "" {
		typ = "UndefinedError"
	}
	switch name, isStr := u.name.(Str); {
	case u.hint != "":
		return runtimeErrorf(typ, "%s", u.hint)
	case u.obj == nil:
		return runtimeErrorf(typ, "%s is undefined", shortRepr(u.name))
	case !isStr:
		return runtimeErrorf(typ, "%s has no element %s", objectTypeRepr(u.obj), shortRepr(u.name))
	default:
		return runtimeErrorf(typ, "'%s' has no attribute %s", objectTypeRepr(u.obj), reprString(string(name)))
	}
}

// objectTypeRepr names the type of v as jinja2's messages do.
func objectTypeRepr(v Value) string {
	switch v := v.(type) {
	case None:
		return "None"
	case *namespace, *cycler, *joiner:
		return "jinja2.utils." + v.typeName() + " object"
	case *macroValue, *loopContext:
		return "jinja2.runtime." + v.typeName() + " object"
	case markup:
		return "markupsafe.Markup object"
	}
	return v.typeName() + " object"
}

// normalizeInt is i as an Int where it fits.
func normalizeInt(i *big.Int) Value {
	if i.IsInt64() {
		return Int(i.Int64())
	}
	return bigInt{i}
}

// asInt is the value of an int or bool that fits 64 bits.
func asInt(v Value) (int64, bool) {
	switch v := v.(type) {
	case Int:
		return int64(v), true
	case Bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// asBig is the value of any int or bool.
func asBig(v Value) (*big.Int, bool) {
	if b, ok := v.(bigInt); ok {
		return b.i, true
	}
	i, ok := asInt(v)
	return big.NewInt(i), ok
}

// asFloat is the value of any number. Ints too large for a float become infinite.
func asFloat(v Value) (float64, bool) {
	switch v := v.(type) {
	case Float:
		return float64(v), true
	case bigInt:
		f, _ := new(big.Float).SetInt(v.i).Float64()
		return f, true
	}
	i, ok := asInt(v)
	return float64(i), ok
}

func isNumber(v Value) bool {
	switch v.(type) {
	case Int, Bool, bigInt, Float:
		return true
	}
	return false
}

// asString is the text of a str, marked safe or not.
func asString(v Value) (string, bool) {
	switch v := v.(type) {
	case Str:
		return string(v), true
	case markup:
		return string(v), true
	}
	return "", false
}

// like is s as the kind of string that v is: a method of a safe string gives a safe string.
func like(v Value, s string) Value {
	if _, ok := v.(markup); ok {
		return markup(s)
	}
	return Str(s)
}

// truth is Python's bool(v).
func truth(v Value) bool {
	switch v := v.(type) {
	case None, undefined:
		return false
	case Bool:
		return bool(v)
	case Int:
		return v != 0
	case Float:
		return v != 0
	case Str:
		return v != ""
	case markup:
		return v != ""
	case bytesValue:
		return v != ""
	case *List:
		return len(v.Items) > 0
	case tuple:
		return len(v) > 0
	case *Dict:
		return v.Len() > 0
	case dictView:
		return v.dict.Len() > 0
	case rangeValue:
		return v.len() > 0
	}
	return true
}

// len is the number of elements, at most math.MaxInt64.
func (r rangeValue) len() int64 {
	var n uint64
	switch {
	case r.step > 0 && r.start < r.stop:
		n = (uint64(r.stop)-uint64(r.start)-1)/uint64(r.step) + 1
	case r.step < 0 && r.start > r.stop:
		n = (uint64(r.start)-uint64(r.stop)-1)/(-uint64(r.step)) + 1
	}
	return int64(min(n, math.MaxInt64))
}

func (r rangeValue) at(i int64) Value { return Int(r.start + i*r.step) }
