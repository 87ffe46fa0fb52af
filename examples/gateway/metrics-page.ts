import type { RequestHandler } from 'express'
import type { Peers } from './peers.ts'
import { singleFlight } from './single-flight.ts'

/** Making an answer takes long only while a worker does not tell its figures. */
const MAX_AGE_MS = 1000

/**
 * Answers scrapes of this process or of all workers. They need no key, so they take at most a tenth of the time: scrapes
 * share an answer while it is made and for nine times as long, a second at most.
 */
export function metricsPage(ownText: () => Promise<string>, peers: Peers | undefined): RequestHandler {
  const scrape = singleFlight(
    async () => (peers ? ((await peers.ask('metrics'))[0]?.figures ?? '') : ownText()),
    (tookMs) => Math.min(MAX_AGE_MS, 9 * tookMs),
  )
  return async function metricsPage(_req, res) {
    res.type('text/plain; version=0.0.4; charset=utf-8').send(await scrape())
  }
}
