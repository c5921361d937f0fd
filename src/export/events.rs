//! The table of token events: one row per event, with the gap before it.

use crate::rows::EventRow;

use super::breakdown::Named;
use super::{Cell, Column, Kind, Sheet};

/// The columns. The labels of a run are only in the table of requests; `sweep`, `run_id` and `request`
/// identify the request to which an event belongs.
pub fn columns() -> Vec<Column> {
    let int = |name, doc| Column::new(name, Kind::Int, doc);
    vec![
        Column::new("sweep", Kind::Text, "Name of the sweep.").null("exported without a plan"),
        Column::new("run_id", Kind::Text, "The full RunId."),
        int("attempt", "Number of the attempt at the run, from 1."),
        int("request", "Number of the request in its run, from 0."),
        int("event", "Number of the token event in its response, from 0."),
        int("gap_ns", "Time since the previous event.").null("the first event"),
        int("offset_ns", "Time since the first event."),
        int("at_ns", "Time since the run's start."),
    ]
}

/// Returns the table of all token events of `runs`, in the order given; requests without events have no rows.
pub(crate) fn sheet<'a, R>(runs: impl Iterator<Item = (Named, R)> + 'a) -> Sheet<'a>
where
    R: Iterator<Item = EventRow> + 'a,
{
    let rows = runs.flat_map(|((sweep, labels), events)| {
        let labels = [sweep.into(), labels.run_id.into(), labels.attempt.into()];
        events.flat_map(move |row| of_request(labels.clone(), row))
    });
    Sheet { columns: columns(), rows: Box::new(rows) }
}

fn of_request(labels: [Cell; 3], row: EventRow) -> impl Iterator<Item = Vec<Cell>> {
    let EventRow { request, first_token_ns, gaps_ns } = row;
    let mut offset = 0u64;
    let gaps = std::iter::once(None).chain(gaps_ns.into_iter().map(Some));
    let events = first_token_ns.into_iter().flat_map(move |first| gaps.clone().map(move |gap| (first, gap)));
    events.zip(0u64..).map(move |((first, gap), event)| {
        offset = offset.saturating_add(gap.unwrap_or(0));
        let numbers = [request.into(), event.into(), gap.into(), offset.into(), first.saturating_add(offset).into()];
        labels.clone().into_iter().chain(numbers).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::Csv;
    use crate::export::sheet::tests::written;
    use crate::rows::RunLabels;

    #[test]
    fn each_event_has_the_gap_before_it() {
        let labels = RunLabels { run_id: "ab".into(), attempt: 1, ..RunLabels::default() };
        let rows = [
            EventRow { request: 0, first_token_ns: Some(100), gaps_ns: vec![10, 0, 5] },
            EventRow { request: 1, first_token_ns: None, gaps_ns: vec![] },
            EventRow { request: 2, first_token_ns: Some(200), gaps_ns: vec![] },
            EventRow { request: 3, first_token_ns: Some(u64::MAX), gaps_ns: vec![u64::MAX] },
        ];
        let text = written(&Csv, sheet([((Some("s".to_owned()), labels), rows.into_iter())].into_iter()));
        insta::assert_snapshot!(text, @r#"
        sweep,run_id,attempt,request,event,gap_ns,offset_ns,at_ns
        s,ab,1,0,0,,0,100
        s,ab,1,0,1,10,10,110
        s,ab,1,0,2,0,10,110
        s,ab,1,0,3,5,15,115
        s,ab,1,2,0,,0,200
        s,ab,1,3,0,,0,18446744073709552000
        s,ab,1,3,1,18446744073709552000,18446744073709552000,18446744073709552000
        "#);
    }
}
