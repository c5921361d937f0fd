//! The vocabulary of the prose: six topics, and the words that fit all of them.
//!
//! Plain ASCII. No word is longer than nine letters, nor the first word of a sentence longer than seven, so that a text
//! can be cut at a word border within one token of any length. Things are singular and verbs are transitive in the past
//! tense, so that any of them fit together.

/// What one text is about.
pub(super) struct Topic {
    /// Who acts.
    pub(crate) actors: &'static [&'static str],
    /// What was done to a thing.
    pub(crate) verbs: &'static [&'static str],
    /// What it was done to.
    pub things: &'static [&'static str],
    /// Where.
    pub places: &'static [&'static str],
    /// How a thing was.
    pub(crate) qualities: &'static [&'static str],
    /// What for, after `to`.
    pub(crate) aims: &'static [&'static str],
    /// What the reader is asked at the end.
    pub questions: &'static [&'static str],
}

/// Questions short enough for a prompt of a few words, shortest first.
#[rustfmt::skip]
pub(super) const SHORT_QUESTIONS: &[&str] = &[
    "Why?", "And then?", "What next?", "Explain why.", "Who was right?", "What went wrong?", "What was the cause?",
    "What would you do now?", "Sum this up in one line.", "Which step came too late?", "What should be done first?",
    "Name the most likely reason.",
];

#[rustfmt::skip]
pub(super) const TIMES: &[&str] = &[
    "early on Monday", "late in the evening", "two days later", "around noon", "before the first break",
    "on the third day", "that same week", "at the end of spring", "shortly after six", "one cold morning",
    "during the last hour", "once the rain stopped", "just before midnight", "by the next meeting",
];

#[rustfmt::skip]
pub(super) const MANNERS: &[&str] = &[
    "with great care", "in a hurry", "without a word", "step by step", "as the book says", "by hand",
    "for the second time", "against all advice", "in plain sight", "at no extra cost", "as quickly as possible",
    "with a steady hand",
];

#[rustfmt::skip]
pub(super) const LINKS: &[&str] = &[
    "even so,", "as a result,", "in the end,", "for that reason,", "to be fair,", "by contrast,", "oddly enough,",
    "as usual,", "at first,", "much later,", "in short,", "against the plan,",
];

#[rustfmt::skip]
pub(super) const SPANS: &[&str] = &[
    "half an hour", "three days", "a whole week", "most of the night", "two long meetings", "nearly a month",
    "less than a minute", "the better part of a day", "four attempts", "one quiet afternoon",
];

pub(super) const TOPICS: &[Topic] = &[OPERATIONS, TRAVEL, COOKING, HISTORY, REVIEW, GARDEN];

#[rustfmt::skip]
const OPERATIONS: Topic = Topic {
    actors: &[
        "the night crew", "the duty engineer", "a new operator", "the storage team", "our network lead",
        "the vendor", "the second shift", "a tired admin", "the release manager", "the customer desk",
    ],
    verbs: &[
        "restarted", "measured", "replaced", "drained", "patched", "logged", "moved", "isolated", "rolled back",
        "watched", "doubled", "renamed",
    ],
    things: &[
        "the primary database", "the backup link", "the oldest rack", "the job queue", "the cooling fan",
        "the alert rule", "the power meter", "the proxy cache", "the disk array", "the login service",
        "the traffic graph", "the batch window", "the spare switch", "the config file",
    ],
    places: &[
        "in the cold aisle", "behind the firewall", "at the second site", "on the test cluster",
        "near the loading dock", "under the raised floor", "in the control room", "across both regions",
    ],
    qualities: &[
        "slow", "noisy", "out of date", "stable", "half empty", "too warm", "offline", "almost full",
    ],
    aims: &[
        "keep the queue short", "free some memory", "prove the backup works", "bring the error rate down",
        "find the faulty cable", "stay within the budget",
    ],
    questions: &[
        "Which of these steps would you repeat, and in what order?",
        "Write a short report for the manager on duty.",
        "What is the most likely root cause, and how would you test it?", "Which alarm should have fired first?",
        "List three checks for the next shift.", "How would you stop this from coming back?",
    ],
};

#[rustfmt::skip]
const TRAVEL: Topic = Topic {
    actors: &[
        "our guide", "the ferry captain", "an old farmer", "my sister", "the hotel owner", "a group of students",
        "the bus driver", "a friendly hiker", "the border guard", "the museum clerk",
    ],
    verbs: &[
        "reached", "missed", "sketched", "crossed", "praised", "booked", "found", "skipped", "explored",
        "described", "passed", "left",
    ],
    things: &[
        "the harbour road", "the stone bridge", "the last train", "the market square", "the mountain hut",
        "the narrow path", "the blue chapel", "the river ferry", "the old windmill", "the night bus",
        "the salt lake", "the city gate", "the guest house", "the coast trail",
    ],
    places: &[
        "above the valley", "close to the border", "on the far shore", "below the castle", "past the vineyard",
        "along the canal", "at the edge of town", "between two hills",
    ],
    qualities: &[
        "crowded", "quiet", "closed", "hard to find", "worth the trip", "covered in fog", "busy", "cheap",
    ],
    aims: &[
        "see the sunset", "avoid the crowd", "catch the morning boat", "rest for an hour", "save a day",
        "meet the others",
    ],
    questions: &[
        "Plan the next two days for a family with one child.",
        "Which place in this story would you visit first, and why?", "Describe the route in three short steps.",
        "What should the group pack for the way back?", "Write a postcard about this day.",
        "How long would the whole trip take on foot?",
    ],
};

#[rustfmt::skip]
const COOKING: Topic = Topic {
    actors: &[
        "the head chef", "my aunt", "the young baker", "the kitchen help", "a hungry guest", "the fish seller",
        "the pastry cook", "our neighbour", "the wine steward", "the food critic",
    ],
    verbs: &[
        "stirred", "tasted", "chopped", "salted", "roasted", "cooled", "served", "burned", "warmed", "plated",
        "weighed", "glazed",
    ],
    things: &[
        "the onion soup", "the rye bread", "the lamb stew", "the lemon cake", "the pepper sauce", "the bean salad",
        "the apple tart", "the fresh pasta", "the smoked trout", "the rice dish", "the garlic butter",
        "the plum jam", "the cheese board", "the herb omelette",
    ],
    places: &[
        "on the low flame", "in the iron pan", "beside the oven", "at the long table", "in the cellar",
        "under a damp cloth", "by the window", "over the coals",
    ],
    qualities: &[
        "too salty", "tender", "golden", "bland", "perfect", "almost raw", "crisp", "bitter",
    ],
    aims: &[
        "please the guests", "use up the leftovers", "bring out the flavour", "save the sauce",
        "feed twelve people", "serve on time",
    ],
    questions: &[
        "Turn this into a recipe with exact steps.", "What would you serve with it, and why?",
        "Which mistake spoiled the dish?", "How could the same meal be made without meat?",
        "Write the menu card for this evening.", "What should be cooked first to finish on time?",
    ],
};

#[rustfmt::skip]
const HISTORY: Topic = Topic {
    actors: &[
        "the young queen", "the city council", "a rich merchant", "the rebel army", "the chief scribe",
        "the harbour guild", "the last governor", "a monk from the north", "the royal envoy", "the weavers",
    ],
    verbs: &[
        "signed", "refused", "burned", "copied", "defended", "sold", "inherited", "rebuilt", "recorded", "taxed",
        "seized", "honoured",
    ],
    things: &[
        "the peace treaty", "the grain store", "the eastern wall", "the trade charter", "the silver mine",
        "the great library", "the river toll", "the winter palace", "the coin mint", "the secret letter",
        "the land register", "the war fleet", "the temple roof", "the old calendar",
    ],
    places: &[
        "in the capital", "beyond the mountains", "along the trade road", "at the river mouth",
        "inside the fortress", "on the frontier", "in the lower town", "near the battle site",
    ],
    qualities: &[
        "disputed", "in ruins", "famous", "forgotten", "worthless", "well kept", "heavily taxed", "contested",
    ],
    aims: &[
        "end the long war", "win the nobles over", "pay the soldiers", "feed the capital", "hide the defeat",
        "secure the throne",
    ],
    questions: &[
        "Which event here mattered most for what followed?", "Tell the same story from the other side.",
        "What evidence would support this account?", "Put the events in order and date them roughly.",
        "Why did the plan fail in the end?", "Write an entry for a school book.",
    ],
};

#[rustfmt::skip]
const REVIEW: Topic = Topic {
    actors: &[
        "the reviewer", "the author", "a junior developer", "the build server", "the platform team", "the tester",
        "the previous owner", "our tech lead", "a careful intern", "the on-call person",
    ],
    verbs: &[
        "rewrote", "renamed", "removed", "tested", "merged", "reverted", "profiled", "split", "inlined", "approved",
        "blocked", "commented",
    ],
    things: &[
        "the retry loop", "the parser", "the public method", "the cache layer", "the failing test",
        "the error type", "the config loader", "the lock file", "the index lookup", "the hot path",
        "the helper class", "the date format", "the queue worker", "the long function",
    ],
    places: &[
        "in the main branch", "behind a flag", "at the call site", "in the shared module", "on the slow machine",
        "in both clients", "inside the handler", "near the entry point",
    ],
    qualities: &[
        "flaky", "too clever", "untested", "readable", "twice as fast", "unsafe", "hard to follow", "obsolete",
    ],
    aims: &[
        "keep the change small", "make the test pass", "avoid a second copy", "name the real problem",
        "ship before Friday", "cut the latency",
    ],
    questions: &[
        "Write a polite review with the two most serious points.",
        "Which change would you ask for before the merge?",
        "What could break in service, and how would you notice?", "Suggest better names for the parts mentioned.",
        "Which test is missing here?", "How would you split this into smaller steps?",
    ],
};

#[rustfmt::skip]
const GARDEN: Topic = Topic {
    actors: &[
        "the gardener", "our landlord", "the school class", "a local botanist", "the seed dealer", "my father",
        "the bee keeper", "the park ranger", "the night frost", "a stray goat",
    ],
    verbs: &[
        "watered", "pruned", "planted", "harvested", "covered", "ruined", "moved", "measured", "shaded", "cleared",
        "fenced in", "saved",
    ],
    things: &[
        "the rose bed", "the apple tree", "the compost heap", "the herb corner", "the glass house",
        "the tomato row", "the gravel path", "the rain barrel", "the wild hedge", "the bean frame",
        "the small pond", "the cherry sapling", "the moss lawn", "the tool shed",
    ],
    places: &[
        "along the south wall", "under the walnut", "beside the gate", "in the wet corner", "on the terrace",
        "behind the shed", "near the beehives", "at the top of the slope",
    ],
    qualities: &[
        "dry", "in full bloom", "overgrown", "bare", "full of ants", "healthy", "late this year", "frozen",
    ],
    aims: &[
        "keep the slugs away", "get a second crop", "hold the water back", "feed the soil", "give the bees a home",
        "make room for spring",
    ],
    questions: &[
        "Draw up a plan for the coming season.", "What would you plant in its place, and when?",
        "Which of these problems is the most urgent?", "Explain to a child what happened here.",
        "How much water does this need in a dry month?", "List the tools for the work described.",
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_short_enough_to_cut_between() {
        let topics = TOPICS.iter().flat_map(|t| [t.actors, t.verbs, t.things, t.places, t.qualities, t.aims]);
        let letters = |word: &str| word.trim_end_matches([',', '.', ':']).len();
        for phrase in topics.chain([TIMES, MANNERS, LINKS, SPANS]).flatten() {
            assert!(phrase.is_ascii() && phrase.split(' ').all(|word| (1..=9).contains(&letters(word))), "{phrase}");
        }
        for start in TIMES.iter().chain(LINKS).chain(TOPICS.iter().flat_map(|topic| topic.actors)) {
            assert!(start.split(' ').next().is_some_and(|word| letters(word) <= 7), "{start}");
        }
    }
}
