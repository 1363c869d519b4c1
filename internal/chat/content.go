package chat

// WantsContentParts tells whether the template takes a message's content apart itself: it loops over the parts of
// the content, as templates of models that also see images do. Other templates want the content as one string.
// The rule is vLLM's: a loop over message.content, where message comes from a loop over messages or a variable
// that messages were assigned to.
func (t *Template) WantsContentParts() bool {
	lists := assigned(t.body, "messages")
	messages := map[string]bool{}
	walkStmts(t.body, func(s stmt) bool {
		if loop, ok := s.(*forStmt); ok && reaches(loop.iter, lists, "") {
			if target, ok := loop.target.(*nameExpr); ok {
				messages[target.name] = true
			}
		}
		return true
	})
	found := false
	walkStmts(t.body, func(s stmt) bool {
		if loop, ok := s.(*forStmt); ok {
			found = found || reaches(loop.iter, messages, "content")
		}
		return !found
	})
	return found
}

// assigned is name and the variables that are set to it, or to a filtered or cut one, at any remove.
func assigned(body []stmt, name string) map[string]bool {
	names := map[string]bool{name: true}
	for grown := true; grown; {
		grown = false
		walkStmts(body, func(s stmt) bool {
			set, ok := s.(*setStmt)
			if !ok || !reaches(set.value, names, "") {
				return true
			}
			if target, ok := set.target.(*nameExpr); ok && !names[target.name] {
				names[target.name], grown = true, true
			}
			return true
		})
	}
	return names
}

// reaches tells whether x is one of the variables or, with a key, the item of that name in one; filtered, tested or cut.
func reaches(x expr, names map[string]bool, key string) bool {
	switch x := x.(type) {
	case *filterExpr:
		return x.x != nil && reaches(x.x, names, key)
	case *testExpr:
		return reaches(x.x, names, key)
	case *attrExpr:
		return key != "" && x.name == key && reaches(x.x, names, "")
	case *itemExpr:
		if _, ok := x.index.(*sliceExpr); ok {
			return reaches(x.x, names, key)
		}
		index, ok := x.index.(*constExpr)
		return ok && key != "" && index.value == Str(key) && reaches(x.x, names, "")
	case *nameExpr:
		return key == "" && names[x.name]
	}
	return false
}
