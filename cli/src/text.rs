//! Texts of unknown length, in lines that have an end.

/// At most so many characters, in one line; `…` stands for what is left out.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if line.chars().count() <= most {
        return line;
    }
    let mut line: String = line.chars().take(most.saturating_sub(1)).collect();
    line.push('…');
    line
}

/// Rows under each other, as they come: columns are as wide as the widest cell so far.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    widths: Vec<usize>,
}

impl Columns {
    /// A block of rows.
    pub(crate) fn rows<const N: usize>(&mut self, rows: &[[String; N]]) -> Vec<String> {
        self.widths.resize(N, 0);
        for row in rows {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        rows.iter().map(|row| self.row(row)).collect()
    }

    fn row(&self, row: &[String]) -> String {
        let cells = row.iter().zip(&self.widths);
        let cells = cells.map(|(cell, width)| format!("{cell:<width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_lines_stay_lines() {
        assert_eq!(cut("one\ntwo", 10), "one two");
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
    }

    #[test]
    fn columns_grow_and_do_not_shrink() {
        let mut columns = Columns::default();
        let row = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        assert_eq!(
            columns.rows(&[row("a", "b"), row("long", "")]),
            ["a     b", "long"]
        );
        assert_eq!(columns.rows(&[row("x", "y")]), ["x     y"]);
    }
}
