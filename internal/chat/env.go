package chat

// environment is what every template can use: filters, tests, global functions and the methods of values. It is
// made once for each template and never changes.
type environment struct {
	filters map[string]*native
	tests   map[string]*native
	globals map[string]Value

	strMethods, listMethods, tupleMethods, dictMethods map[string]*native
	bytesMethods, intMethods, floatMethods             map[string]*native
	rangeMethods, cyclerMethods, setMethods            map[string]*native
}

func newEnvironment() *environment {
	e := &environment{
		filters:       merge(textFilters(), listFilters(), selectFilters(), valueFilters()),
		tests:         builtinTests(),
		strMethods:    merge(searchMethods(), splitMethods(), caseMethods(), padMethods()),
		listMethods:   listMethods(),
		tupleMethods:  tupleMethods(),
		dictMethods:   dictMethods(),
		bytesMethods:  bytesMethods(),
		intMethods:    intMethods(),
		floatMethods:  floatMethods(),
		rangeMethods:  tupleMethods(),
		cyclerMethods: cyclerMethods(),
		setMethods:    setMethods(),
		globals:       map[string]Value{},
	}
	for name, n := range globalFunctions() {
		n.name = name
		e.globals[name] = &function{native: n}
	}
	return e
}

// merge joins tables of functions and gives each function its name.
func merge(tables ...map[string]*native) map[string]*native {
	all := map[string]*native{}
	for _, t := range tables {
		for name, n := range t {
			n.name = name
			all[name] = n
		}
	}
	return all
}

// method is the method of obj with that name, or nil.
func (e *environment) method(obj Value, name string) *native {
	switch obj := obj.(type) {
	case Str, markup:
		return e.strMethods[name]
	case *List:
		return e.listMethods[name]
	case tuple, *group:
		return e.tupleMethods[name]
	case *Dict:
		return e.dictMethods[name]
	case bytesValue:
		return e.bytesMethods[name]
	case Int, bigInt, Bool:
		return e.intMethods[name]
	case Float:
		return e.floatMethods[name]
	case rangeValue:
		return e.rangeMethods[name]
	case *cycler:
		return e.cyclerMethods[name]
	case dictView:
		if obj.kind != "values" {
			return e.setMethods[name]
		}
	}
	return nil
}
