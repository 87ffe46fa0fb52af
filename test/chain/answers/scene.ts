import assert from 'node:assert/strict'
import { type BilledGateway, billedGateway } from '../../middleware/billing-guard/billed-gateway.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type Exchange, readExchange } from '../../support/exchange.ts'
import { answerJson, type ScriptedUpstream, startUpstream, stream } from '../../support/scripted-upstream.ts'
import { type Content, INPUT_TOKENS, OUTPUT_TOKENS, type Shape, type StopReason } from './content-forms.ts'
import type { Direction, LineForm } from './directions.ts'

/** One answer of the first line. */
export interface Play {
  readonly content: Content
  readonly reason: StopReason
  /** How it is streamed; undefined for a whole answer. */
  readonly shape: Shape | undefined
  /** The data of all events, instead of those of the content. */
  readonly events?: readonly string[]
  /** Changes the data of each event or of the whole answer. */
  readonly alter?: (data: string) => string
  /** Whether the gateway breaks the answer off. */
  readonly breaks?: true
  /** Further members of the request. */
  readonly extra?: object
}

/** The result of a play. */
export interface Played {
  readonly got: Exchange
  /** The events that the line sent. */
  readonly sent: readonly string[]
  readonly entry: Awaited<ReturnType<BilledGateway['entry']>>
}

/** The text of the line behind the first. */
export const FALLBACK = 'Second'

/** The cost of an answer of either line by its report: prices are 1000 and 10000 nano-units per token. */
export const PRICE = '0.000037'

/** A gateway that charges, over two lines of one direction. */
export interface Scene {
  play(play: Play): Promise<Played>
  readonly gateway: BilledGateway
}

export async function sceneOf({ caller, line }: Direction): Promise<Scene> {
  const cleanUp = cleaningUp()
  const upstream: ScriptedUpstream = await startUpstream()
  cleanUp.after(() => upstream.close())
  const seed = (model: string) => ({ url: upstream.url, models: { chat: model }, ...line.config })
  const gateway = await billedGateway(cleanUp, { lines: [seed('first'), seed('second')], balance: '10000' })
  return {
    gateway,
    async play(play) {
      const streams = play.shape !== undefined
      const sent = eventsOf(line, play)
      const second: Play = {
        content: { text: FALLBACK },
        reason: line.plainReasons[0] ?? null,
        shape: play.shape && 'first event',
      }
      upstream.script = async (res, { json }) => {
        const events = json.model === 'first' ? sent : eventsOf(line, second)
        if (streams)
          await stream(
            res,
            events.map((data) => framed(line, data)),
          )
        else answerJson(res, 200, JSON.parse(events[0] ?? ''))
      }
      const body = {
        model: 'chat',
        ...caller.body,
        stream: streams,
        ...usageAsked(caller.path, streams),
        ...play.extra,
      }
      const got = await readExchange(await gateway.post(caller.path, body))
      assert.equal(got.broken, play.breaks === true)
      return { got, sent, entry: await gateway.entry(got.requestId) }
    },
  }
}

function eventsOf(
  line: LineForm,
  { content, reason, shape, events: given, alter = (data) => data }: Play,
): readonly string[] {
  const events = shape ? line.streamed(content, reason, shape) : [JSON.stringify(line.plain(content, reason))]
  return (given ?? events).map(alter)
}

const usageAsked = (path: string, streams: boolean): object =>
  streams && path.endsWith('completions') ? { stream_options: { include_usage: true } } : {}

const framed = ({ named }: LineForm, data: string): string =>
  named ? `event: ${JSON.parse(data).type}\ndata: ${data}\n\n` : `data: ${data}\n\n`

/** The data of each event that a caller got. */
export const dataIn = (text: string): readonly string[] =>
  [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => data as string)

assert.equal(PRICE, `0.0000${INPUT_TOKENS + 10 * OUTPUT_TOKENS}`)
