package chat

import (
	"strconv"
	"strings"
)

// selectFilters go through a sequence with another filter, a test or an attribute.
func selectFilters() map[string]*native {
	return map[string]*native{
		"map":        fn("/ value * **", filterMap),
		"select":     fn("/ value * **", selector(true, false)),
		"reject":     fn("/ value * **", selector(false, false)),
		"selectattr": fn("/ value * **", selector(true, true)),
		"rejectattr": fn("/ value * **", selector(false, true)),
		"groupby":    fn("value attribute default? case_sensitive?", filterGroupBy),
		"sum":        fn("iterable attribute? start?", filterSum),
		"sort":       fn("value reverse? case_sensitive? attribute?", filterSort),
		"unique":     fn("value case_sensitive? attribute?", filterUnique),
		"min":        fn("value case_sensitive? attribute?", extreme("<")),
		"max":        fn("value case_sensitive? attribute?", extreme(">")),
		"dictsort":   fn("value case_sensitive? by? reverse?", filterDictSort),
		"join":       fn("value d? attribute?", filterJoin),
	}
}

// getter finds an attribute of an item by a path such as "function.name" or "0.id".
type getter struct {
	path       []Value
	ignoreCase bool
	def        Value // what stands for an undefined part, or nil
}

func newGetter(attribute Value) getter {
	var g getter
	switch a := attribute.(type) {
	case nil, None:
	case Str, markup:
		s, _ := asString(a)
		for part := range strings.SplitSeq(s, ".") {
			if i, err := strconv.ParseInt(part, 10, 64); err == nil && isDigits(part) {
				g.path = append(g.path, Int(i))
			} else {
				g.path = append(g.path, Str(part))
			}
		}
	default:
		g.path = []Value{a}
	}
	return g
}

func (in *interp) get(g getter, item Value) (Value, error) {
	for _, part := range g.path {
		var err error
		if item, err = in.item(item, part); err != nil {
			return nil, err
		}
		if g.def != nil && isUndefined(item) {
			item = g.def
		}
	}
	if g.ignoreCase {
		return ignoreCase(item), in.step(1)
	}
	return item, in.step(1)
}

func ignoreCase(v Value) Value {
	if s, ok := asString(v); ok {
		return Str(lower(s))
	}
	return v
}

// filterMap looks up an attribute of each item or applies another filter to it.
func filterMap(in *interp, a *arguments) (Value, error) {
	if !truth(a.v[0]) {
		return &generator{typ: "generator", next: sliceIterator(nil)}, nil
	}
	var apply func(Value) (Value, error)
	var next iterator
	start := func() error {
		var err error
		if apply, err = in.mapper(a); err != nil {
			return err
		}
		next, err = in.iterate(a.v[0])
		return err
	}
	return &generator{typ: "generator", next: func() (Value, bool, error) {
		if next == nil {
			if err := start(); err != nil {
				return nil, false, err
			}
		}
		item, ok, err := next()
		if err != nil || !ok {
			return nil, false, err
		}
		v, err := apply(item)
		return v, true, err
	}}, nil
}

// mapper is the function that the map filter applies.
func (in *interp) mapper(a *arguments) (func(Value) (Value, error), error) {
	if len(a.rest) == 0 && a.keywords != nil {
		if attribute, ok := a.keywords.Get("attribute"); ok {
			g := newGetter(attribute)
			for k, v := range a.keywords.All {
				switch name, _ := asString(k); name {
				case "attribute":
				case "default":
					if _, none := v.(None); !none {
						g.def = v
					}
				default:
					return nil, runtimeErrorf("FilterArgumentError", "Unexpected keyword argument %s", reprString(name))
				}
			}
			return func(item Value) (Value, error) { return in.get(g, item) }, nil
		}
	}
	if len(a.rest) == 0 {
		return nil, runtimeErrorf("FilterArgumentError", "map requires a filter argument")
	}
	name, ok := asString(a.rest[0])
	if !ok || in.env.filters[name] == nil {
		return nil, runtimeErrorf("TemplateRuntimeError", "No filter named %s.", shortRepr(a.rest[0]))
	}
	return func(item Value) (Value, error) {
		c := &callValues{args: append([]Value{item}, a.rest[1:]...), keywords: a.keywords}
		return in.callFilter(name, c)
	}, nil
}

// selector makes the filters that keep the items that pass a test, or those that do not.
func selector(keep, byAttribute bool) func(in *interp, a *arguments) (Value, error) {
	return func(in *interp, a *arguments) (Value, error) {
		if !truth(a.v[0]) {
			return &generator{typ: "generator", next: sliceIterator(nil)}, nil
		}
		var pass func(Value) (bool, error)
		var next iterator
		start := func() error {
			var err error
			if pass, err = in.predicate(a, byAttribute); err != nil {
				return err
			}
			next, err = in.iterate(a.v[0])
			return err
		}
		return &generator{typ: "generator", next: func() (Value, bool, error) {
			if next == nil {
				if err := start(); err != nil {
					return nil, false, err
				}
			}
			for {
				item, ok, err := next()
				if err != nil || !ok {
					return nil, false, err
				}
				yes, err := pass(item)
				if err != nil {
					return nil, false, err
				}
				if yes == keep {
					return item, true, nil
				}
			}
		}}, nil
	}
}

// predicate is the question that select and its kin ask of each item.
func (in *interp) predicate(a *arguments, byAttribute bool) (func(Value) (bool, error), error) {
	rest := a.rest
	var g getter
	if byAttribute {
		if len(rest) == 0 {
			return nil, runtimeErrorf("FilterArgumentError", "Missing parameter for attribute name")
		}
		g, rest = newGetter(rest[0]), rest[1:]
	}
	if len(rest) == 0 {
		return func(item Value) (bool, error) {
			v, err := in.get(g, item)
			return err == nil && truth(v), err
		}, nil
	}
	name, ok := asString(rest[0])
	if !ok || in.env.tests[name] == nil {
		return nil, runtimeErrorf("TemplateRuntimeError", "No test named %s.", shortRepr(rest[0]))
	}
	return func(item Value) (bool, error) {
		v, err := in.get(g, item)
		if err != nil {
			return false, err
		}
		c := &callValues{args: append([]Value{v}, rest[1:]...), keywords: a.keywords}
		yes, err := in.callTest(name, c)
		return err == nil && truth(yes), err
	}, nil
}

// keyed collects a sequence and the key of each item.
func (in *interp) keyed(v Value, g getter) (items, keys []Value, err error) {
	if items, err = in.collect(v); err != nil {
		return nil, nil, err
	}
	keys = make([]Value, len(items))
	for i, item := range items {
		if keys[i], err = in.get(g, item); err != nil {
			return nil, nil, err
		}
	}
	return items, keys, nil
}

func filterGroupBy(in *interp, a *arguments) (Value, error) {
	g := newGetter(a.v[1])
	if _, none := a.or(2, None{}).(None); !none {
		g.def = a.v[2]
	}
	plain := g
	g.ignoreCase = !truth(a.or(3, Bool(false)))
	items, keys, err := in.keyed(a.v[0], g)
	if err != nil {
		return nil, err
	}
	sortedItems, err := in.sortBy(items, keys, false)
	if err != nil {
		return nil, err
	}
	sortedKeys, err := in.sortBy(keys, keys, false)
	if err != nil {
		return nil, err
	}
	out := &List{Items: []Value{}}
	for i, item := range sortedItems {
		if i > 0 {
			same, err := in.equal(sortedKeys[i-1], sortedKeys[i])
			if err != nil {
				return nil, err
			}
			if same {
				last := out.Items[len(out.Items)-1].(*group)
				last.list.Items = append(last.list.Items, item)
				continue
			}
		}
		key, err := in.get(plain, item)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, &group{key, &List{[]Value{item}}})
	}
	return out, nil
}

func filterSum(in *interp, a *arguments) (Value, error) {
	total := a.or(2, Int(0))
	if _, ok := asString(total); ok {
		return nil, typeErrorf("sum() can't sum strings [use ''.join(seq) instead]")
	}
	g := newGetter(a.or(1, nil))
	next, err := in.iterate(a.v[0])
	if err != nil {
		return nil, err
	}
	for {
		item, ok, err := next()
		if err != nil || !ok {
			return total, err
		}
		if item, err = in.get(g, item); err != nil {
			return nil, err
		}
		if total, err = in.binary("+", total, item); err != nil {
			return nil, err
		}
	}
}

func filterSort(in *interp, a *arguments) (Value, error) {
	fold := !truth(a.or(2, Bool(false)))
	getters := []getter{newGetter(a.or(3, nil))}
	if s, ok := asString(a.or(3, None{})); ok {
		getters = nil
		for part := range strings.SplitSeq(s, ",") {
			getters = append(getters, newGetter(Str(part)))
		}
	}
	items, err := in.collect(a.v[0])
	if err != nil {
		return nil, err
	}
	keys := make([]Value, len(items))
	for i, item := range items {
		key := &List{}
		for _, g := range getters {
			g.ignoreCase = fold
			v, err := in.get(g, item)
			if err != nil {
				return nil, err
			}
			key.Items = append(key.Items, v)
		}
		keys[i] = key
	}
	sorted, err := in.sortBy(items, keys, truth(a.or(1, Bool(false))))
	return &List{sorted}, err
}

func filterUnique(in *interp, a *arguments) (Value, error) {
	g := newGetter(a.or(2, nil))
	g.ignoreCase = !truth(a.or(1, Bool(false)))
	var next iterator
	seen := map[any]bool{}
	return &generator{typ: "generator", next: func() (Value, bool, error) {
		if next == nil {
			var err error
			if next, err = in.iterate(a.v[0]); err != nil {
				return nil, false, err
			}
		}
		for {
			item, ok, err := next()
			if err != nil || !ok {
				return nil, false, err
			}
			key, err := in.get(g, item)
			if err != nil {
				return nil, false, err
			}
			hash, err := in.dictKey(key)
			if err != nil {
				return nil, false, err
			}
			if !seen[hash] {
				seen[hash] = true
				return item, true, in.build(elementBytes)
			}
		}
	}}, nil
}

// extreme makes the filters min and max: the first item whose key is op all others.
func extreme(op string) func(in *interp, a *arguments) (Value, error) {
	return func(in *interp, a *arguments) (Value, error) {
		g := newGetter(a.or(2, nil))
		g.ignoreCase = !truth(a.or(1, Bool(false)))
		items, keys, err := in.keyed(a.v[0], g)
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			return undefined{hint: "No aggregated item, sequence was empty."}, nil
		}
		best := 0
		for i := 1; i < len(items); i++ {
			better, err := in.ordered(op, keys[i], keys[best])
			if err != nil {
				return nil, err
			}
			if better {
				best = i
			}
		}
		return items[best], nil
	}
}

func filterDictSort(in *interp, a *arguments) (Value, error) {
	by, _ := asString(a.or(2, Str("key")))
	if by != "key" && by != "value" {
		return nil, runtimeErrorf("FilterArgumentError", `You can only sort by either "key" or "value"`)
	}
	d, ok := a.v[0].(*Dict)
	if !ok {
		if u, ok := a.v[0].(undefined); ok {
			return nil, u.error()
		}
		return nil, runtimeErrorf("AttributeError", "'%s' object has no attribute 'items'", a.v[0].typeName())
	}
	keys := make([]Value, d.Len())
	copy(keys, d.keys)
	if by == "value" {
		copy(keys, d.values)
	}
	if !truth(a.or(1, Bool(false))) {
		for i, k := range keys {
			keys[i] = ignoreCase(k)
		}
	}
	items, err := in.drain(dictView{"items", d}.iterate())
	if err != nil {
		return nil, err
	}
	sorted, err := in.sortBy(items, keys, truth(a.or(3, Bool(false))))
	return &List{sorted}, err
}

func filterJoin(in *interp, a *arguments) (Value, error) {
	sep, err := in.str(a.or(1, Str("")))
	if err != nil {
		return nil, err
	}
	_, keys, err := in.keyed(a.v[0], newGetter(a.or(2, nil)))
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(keys))
	for i, k := range keys {
		if texts[i], err = in.str(k); err != nil {
			return nil, err
		}
	}
	s, err := in.joinStrings(texts, sep)
	return Str(s), err
}
