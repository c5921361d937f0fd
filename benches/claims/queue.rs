//! Simulated queues: Poisson arrivals, first come first served, simulated request by request with the
//! workload recursion of Kiefer and Wolfowitz (On the theory of queues with many servers, 1955). Time is in
//! units of the mean service time, so a service time of 20 ms with a window of 10 s is the same queue as a
//! service time of 1 s with a window of 500 s.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};
use sweepline::analysis::flight::Flight;

/// The distribution of service times; the mean is 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Service {
    /// Constant.
    Fixed,
    /// Lognormal with a coefficient of variation; the logarithms of successive requests are correlated by `phi`.
    Lognormal { cv: f64, phi: f64 },
}

/// A queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Queue {
    pub service: Service,
    pub servers: usize,
    /// Ratio of the arrival rate to the servers' capacity.
    pub load: f64,
}

impl Queue {
    /// Returns the queues of the tables, at one load.
    pub fn all(load: f64) -> Vec<Queue> {
        let plain = |cv| Service::Lognormal { cv, phi: 0.0 };
        let correlated = |phi| Service::Lognormal { cv: 1.0, phi };
        let each = |service| [1, 4, 32].map(|servers| Queue { service, servers, load });
        let mut queues: Vec<Queue> = [Service::Fixed, plain(1.0), plain(2.0)].into_iter().flat_map(each).collect();
        queues.extend([0.5, 0.9].map(|phi| Queue { service: correlated(phi), servers: 4, load }));
        queues
    }

    /// Returns the queue's name in Kendall's notation, with `AR` and the correlation if service times are
    /// correlated.
    pub fn name(&self) -> String {
        let k = self.servers;
        match self.service {
            Service::Fixed => format!("M/D/{k}"),
            Service::Lognormal { cv, phi: 0.0 } => format!("M/G/{k} CV {cv}"),
            Service::Lognormal { cv, phi } => format!("M/G/{k} CV {cv} AR {phi}"),
        }
    }

    /// Returns the number of arrivals per service time.
    pub fn rate(&self) -> f64 {
        self.load * self.servers as f64
    }

    /// Returns the relaxation time, the sum of two parts. The first is that of the reflected Brownian
    /// motion that approximates the queue near saturation, 2 σ² / θ², with the variance σ² and the drift θ
    /// of arrivals minus service (Abate and Whitt, Transient behavior of regulated Brownian motion, 1987).
    /// The second is that of the requests in service, E[S²] / E[S], twice the integral of its
    /// autocorrelation if no request waits.
    pub fn relaxation(&self) -> f64 {
        let (cv, phi) = match self.service {
            Service::Fixed => (0.0, 0.0),
            Service::Lognormal { cv, phi } => (cv, phi),
        };
        let of_service = cv * cv * (1.0 + phi) / (1.0 - phi);
        let idle = 1.0 - self.load;
        2.0 * self.load * (1.0 + of_service) / (self.servers as f64 * idle * idle) + 1.0 + cv * cv
    }
}

/// Draws service times.
#[derive(Debug, Clone)]
pub struct Draw {
    service: Service,
    state: f64,
}

impl Draw {
    pub fn new(service: Service) -> Draw {
        Draw { service, state: 0.0 }
    }

    pub fn next(&mut self, rng: &mut ChaCha8Rng) -> f64 {
        match self.service {
            Service::Fixed => 1.0,
            Service::Lognormal { cv, phi } => {
                let fresh: f64 = StandardNormal.sample(rng);
                self.state = phi * self.state + (1.0 - phi * phi).sqrt() * fresh;
                let variance = (1.0 + cv * cv).ln();
                (variance.sqrt() * self.state - variance / 2.0).exp()
            }
        }
    }
}

/// The times at which the servers become free, in ascending order.
#[derive(Debug, Clone)]
pub struct Servers(Vec<f64>);

impl Servers {
    pub fn new(count: usize) -> Servers {
        Servers(vec![0.0; count])
    }

    /// Returns the earliest time at which a server is free.
    pub fn first(&self) -> f64 {
        self.0[0]
    }

    /// Keeps the server that is free first busy until the given time, which is not in the past.
    pub fn take(&mut self, until: f64) {
        let mut at = 0;
        while let Some(next) = self.0.get(at + 1).copied().filter(|next| *next < until) {
            self.0[at] = next;
            at += 1;
        }
        self.0[at] = until;
    }
}

/// One request.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub arrived: f64,
    /// Sum of waiting time and service time.
    pub took: f64,
}

/// A running simulation of a queue.
pub struct Chain {
    rate: f64,
    rng: ChaCha8Rng,
    draw: Draw,
    servers: Servers,
    now: f64,
    /// The next request, already drawn but not used yet.
    ahead: Option<Request>,
}

impl Chain {
    /// Creates an empty queue.
    pub fn empty(queue: &Queue, seed: u64) -> Chain {
        Chain {
            rate: queue.rate(),
            rng: ChaCha8Rng::seed_from_u64(seed),
            draw: Draw::new(queue.service),
            servers: Servers::new(queue.servers),
            now: 0.0,
            ahead: None,
        }
    }

    /// Creates a queue that started empty and has run for this time, so that it is close to its stationary
    /// state.
    pub fn warm(queue: &Queue, seed: u64) -> Chain {
        let mut chain = Chain::empty(queue, seed);
        chain.pass(20.0 * queue.relaxation());
        chain
    }

    /// Returns the next request.
    pub fn next(&mut self) -> Request {
        if let Some(request) = self.ahead.take() {
            return request;
        }
        let gap: f64 = Exp1.sample(&mut self.rng);
        self.now += gap / self.rate;
        let service = self.draw.next(&mut self.rng);
        let wait = (self.servers.first() - self.now).max(0.0);
        self.servers.take(self.now + wait + service);
        Request { arrived: self.now, took: wait + service }
    }

    /// Advances the simulation by this time, and returns the arrival and end of the requests in flight.
    fn pass(&mut self, time: f64) -> Vec<(f64, f64)> {
        let until = self.now + time;
        let mut held = Vec::new();
        loop {
            let request = self.next();
            if request.arrived >= until {
                self.ahead = Some(request);
                return held;
            }
            if request.arrived + request.took > until {
                held.push((request.arrived, request.arrived + request.took));
            }
        }
    }

    /// Returns a window after an unobserved period: the requests in flight, and the times that the requests
    /// of the window took.
    pub fn window(&mut self, after: f64, length: f64) -> (Flight, Vec<f64>) {
        let from = self.now + after;
        let to = from + length;
        let mut spans = self.pass(after);
        let mut values = Vec::new();
        loop {
            let request = self.next();
            if request.arrived >= to {
                self.ahead = Some(request);
                return (Flight { from, to, spans }, values);
            }
            spans.push((request.arrived, request.arrived + request.took));
            values.push(request.took);
        }
    }
}
