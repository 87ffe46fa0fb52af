import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import { translationsOf } from '../../../../lib/core/translate/index.ts'
import {
  inventedIn,
  type MemberFault,
  memberFaults,
  nonsenseIn,
  type Path,
} from '../../../support/member-faults.ts'
import { ANSWERS } from '../../../support/whole-answers.ts'
import { REQUESTS } from '../../../support/whole-requests.ts'
import { JSON_TYPE, lineAnswer, STREAM, sentOf } from '../support/line-answers.ts'

/** The input of a tool is what the model likes. The tools of a response are those of the request. */
const isFreeForm = (path: Path): boolean => ['input', 'tools'].includes(String(path.at(-1)))

/** Whether a list of events itself is at fault, which no line can send. */
const isWholeList = ({ param }: MemberFault): boolean => param === 'events'

/** Leaves out a fault that `times` events of the same type have had at the same place, wherever that is in a list. */
function* fewPerPlace(
  faults: Iterable<MemberFault>,
  events: readonly { type?: string }[],
  times: number,
): Generator<MemberFault> {
  const seen = new Map<string, number>()
  for (const fault of faults) {
    const event = events[Number(/^events\[(\d+)\]/.exec(fault.what)?.[1])]
    const place = `${event?.type} ${fault.what.replaceAll(/\[\d+\]/g, '[]')}`
    const count = seen.get(place) ?? 0
    if (count < times) yield fault
    seen.set(place, count + 1)
  }
}

const valuesIn = (text: string, isStream: boolean): unknown =>
  isStream
    ? [...text.matchAll(/^data: ?(.*)$/gm)].flatMap(([, data]) =>
        data === '[DONE]' ? [] : [JSON.parse(data ?? '')],
      )
    : text === ''
      ? undefined
      : JSON.parse(text)

for (const { operation, request } of REQUESTS)
  for (const translation of [undefined, ...translationsOf(operation)]) {
    const line = translation?.to ?? operation
    const { plain, events, piecesOf } = ANSWERS[line.name] ?? assert.fail()
    for (const asks of [false, true])
      for (const gives of [false, true]) {
        const form = (isStream: boolean): string => (isStream ? 'a stream' : 'a whole answer')

        /** Returns what the caller gets for an answer of the line, and how the call ended. */
        async function got(json: Record<string, unknown>) {
          const body = { json: { ...request, stream: asks } }
          const members = { body, stream: asks, maxOutputTokens: 4000, estimatedInputTokens: 60 }
          const { answered, written, made } = lineAnswer(members, operation, translation)
          const pieces = gives ? piecesOf(json.events as readonly unknown[]) : [JSON.stringify(json)]
          const end = await answered(gives ? STREAM : JSON_TYPE, ...pieces)
          const text = end.kind === 'served' ? sentOf(written(), end) : written().join('')
          return { end, value: valuesIn(text, asks), finished: await made.finished }
        }

        describe(`${form(gives)} of ${line.path} in which a member is missing${asks === gives ? ' or mistyped' : ''}`, () => {
          it(`reaches a caller of ${operation.path} who asks for ${form(asks)} without it, or is refused`, async () => {
            const whole: Record<string, unknown> = gives ? { events } : plain
            const { value: usual } = await got(whole)
            const values = asks !== gives ? [] : translation ? [7, { nonsense: 1 }] : [7]
            const all = memberFaults(whole, isFreeForm, values)
            // A translation may read two events of one type in different ways.
            for (const fault of fewPerPlace(
              all,
              events as readonly { type?: string }[],
              translation && asks === gives ? 2 : 1,
            )) {
              if (isWholeList(fault)) continue
              const { what, json } = fault
              const { end, value, finished } = await got(json)
              assert.ok(
                finished === 'done' || finished instanceof GatewayError,
                `${what}: ${String(finished)}`,
              )
              if (end?.kind === 'failed') {
                assert.match(end.failure.code, /^(?:upstream_error|empty_completion)$/, what)
                assert.doesNotMatch(JSON.stringify(end.failure), /TypeError|Cannot read|not a function/, what)
              } else assert.equal(end?.kind, 'served', what)
              // A line of the caller's own protocol answers for its words itself.
              if (!translation) continue
              assert.deepEqual(nonsenseIn(value), [], what)
              assert.deepEqual(inventedIn(value, usual), [], what)
            }
          })
        })
      }
  }
