package office

func (d *wordReader) table(x *xmlReader, out func(block)) error {
	var rows [][]cell
	names := -1
	var do func(e element) error
	do = func(e element) error {
		switch e.Name.Local {
		case "tr":
			row, isName, gone, err := d.tableRow(x)
			if isName && names == len(rows) || isName && len(rows) == 0 {
				names = len(rows) + 1
			}
			if !gone {
				rows = append(rows, row)
			}
			return err
		case "sdt":
			return d.control(x, do)
		case "Fallback", "tblPr", "tblGrid", "del":
			return nil
		}
		return x.each(do)
	}
	err := x.each(do)
	if names >= len(rows) {
		names = -1 // all rows are marked, so none names columns
	}
	for _, b := range tableBlocks(rows, names) {
		out(b)
	}
	return err
}

func (d *wordReader) tableRow(x *xmlReader) (row []cell, isName, gone bool, err error) {
	var do func(e element) error
	do = func(e element) error {
		switch e.Name.Local {
		case "trPr":
			return x.each(func(e element) error {
				switch e.Name.Local {
				case "tblHeader":
					isName = on(e)
				case "gridBefore":
					row = append(row, cell{span: min(number(e, "val", 1), maxColumns)})
				case "del":
					gone = true
				}
				return nil
			})
		case "tc":
			c, err := d.tableCell(x)
			row = append(row, c)
			return err
		case "sdt":
			return d.control(x, do)
		case "Fallback", "tblPrEx":
			return nil
		}
		return x.each(do)
	}
	err = x.each(do)
	return row, isName, gone, err
}

func (d *wordReader) tableCell(x *xmlReader) (cell, error) {
	c := cell{span: 1}
	out := func(b block) { c.blocks = append(c.blocks, d.countBlock(b)) }
	d.countBlock(block{})
	var do func(e element) error
	do = func(e element) error {
		switch e.Name.Local {
		case "tcPr":
			return x.each(func(e element) error {
				switch e.Name.Local {
				case "gridSpan":
					c.span = min(max(number(e, "val", 1), 1), maxColumns)
				case "vMerge":
					c.merged = attr(e, "val") != "restart"
				}
				return nil
			})
		case "Fallback", "del", "moveFrom":
			return nil
		}
		return d.block(x, e, do, out)
	}
	err := x.each(do)
	return c, err
}
