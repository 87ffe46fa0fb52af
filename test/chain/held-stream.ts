import { eventsOf, type Mode } from '../support/exchange.ts'
import { stream, type UpstreamScript } from '../support/scripted-upstream.ts'

/** A stream that is held behind its first words until the test calls `go`, and then comes to its regular end. */
export function heldStream(mode: Mode): { script: UpstreamScript; go(): void } {
  const held = Promise.withResolvers<void>()
  const events = eventsOf(mode, ['Hello', 'again'])
  return {
    async script(res) {
      await stream(res, events.slice(0, 5), { end: false })
      await held.promise
      for (const event of events.slice(5)) res.write(event)
      res.end()
    },
    go: () => held.resolve(),
  }
}
