//! Tables as lines of text, for dialects that have none.

/// The widest a column may be before its cells are no longer padded.
const WIDEST: usize = 40;

/// Draws rows, the first of which is the head.
pub fn draw(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.trim().chars().count()).max().unwrap_or_default().min(WIDEST)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut drawn = String::new();
    for (nth, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{:width$}", cell.trim()));
        drawn.push_str(cells.collect::<Vec<_>>().join(" | ").trim_end());
        drawn.push('\n');
        if nth == 0 {
            drawn.push_str(
                &widths.iter().map(|&width| "-".repeat(width.max(1))).collect::<Vec<_>>().join("-|-"),
            );
            drawn.push('\n');
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["Name", "n"], ["Ünal", "12"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(draw(&rows), "Name | n\n-----|---\nÜnal | 12\n");
    }
}
