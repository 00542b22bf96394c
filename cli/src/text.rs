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

/// How many, with the right word.
pub(crate) fn count(number: usize, one: &str, more: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {more}"),
    }
}

/// How large, in the unit that fits.
pub(crate) fn size(bytes: usize) -> String {
    const UNITS: [&str; 3] = ["KiB", "MiB", "GiB"];
    if bytes < 1024 {
        return count(bytes, "byte", "bytes");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// Rows under each other, as they come: columns are as wide as the widest cell so far.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    widths: Vec<usize>,
}

impl Columns {
    /// With columns that are so wide at least.
    pub(crate) fn with<const N: usize>(widths: [usize; N]) -> Self {
        Self {
            widths: widths.to_vec(),
        }
    }

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
        // By hand: `{:<width$}` panics from 65536 on.
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            line += cell;
            if row[at + 1..].iter().any(|cell| !cell.is_empty()) {
                let gap = self.widths[at] - cell.chars().count() + 2;
                line.extend(std::iter::repeat_n(' ', gap));
            }
        }
        line
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
    fn sizes_are_told_in_the_unit_that_fits() {
        assert_eq!(size(1), "1 byte");
        assert_eq!(size(1023), "1023 bytes");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(16 << 20), "16.0 MiB");
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
