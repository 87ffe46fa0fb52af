import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { bodyFault } from '../../../lib/core/operations/body/body-schema.ts'
import { translationsOf, Untranslatable } from '../../../lib/core/translate/index.ts'
import { memberFaults } from '../../support/member-faults.ts'
import { misfits, type PublishedType } from '../../support/published-types.ts'
import { isFreeForm, REQUESTS } from '../../support/whole-requests.ts'

const TYPES: Readonly<Record<string, PublishedType>> = {
  'chat.completions': 'chat',
  messages: 'message',
  responses: 'response',
}

interface Sent {
  readonly type: PublishedType
  readonly body: unknown
  /** What was wrong with the request of the caller. */
  readonly what: string
}

/** Returns the bodies that are sent for requests with one fault each: as they came, or translated. */
function sentBodies(): { readonly own: readonly Sent[]; readonly translated: readonly Sent[] } {
  const own: Sent[] = []
  const translated = new Map<string, Sent>()
  for (const { operation, request } of REQUESTS) {
    const faults = [{ json: request, what: 'nothing' }, ...memberFaults(request, isFreeForm)]
    for (const { json, what } of faults) {
      if (bodyFault(operation.schema, json)) continue
      own.push({
        type: TYPES[operation.name] as PublishedType,
        body: json,
        what: `${operation.name}: ${what}`,
      })
      for (const { request: translate, to } of translationsOf(operation)) {
        for (const leaveOut of [undefined, () => {}]) {
          const type = TYPES[to.name] as PublishedType
          const options = { upstreamModel: 'upstream', defaultMaxTokens: 3000, ...(leaveOut && { leaveOut }) }
          try {
            const body = translate(json, options)
            translated.set(type + JSON.stringify(body), {
              type,
              body,
              what: `${operation.name} as ${to.name}: ${what}`,
            })
          } catch (error) {
            if (!(error instanceof Untranslatable)) throw error
          }
        }
      }
    }
  }
  return { own, translated: [...translated.values()] }
}

/** Members that some callers write otherwise than their provider publishes, and that lines understand or refuse. */
const TOLERATED = [
  // A member that is null counts as absent.
  / is null$/,
  // Mistral has the URL itself, and further words for a choice.
  /image_url is "|tool_choice is "/,
  // Labels are for the upstream's records.
  /metadata\.team is /,
  // Arguments that a client keeps parsed, and calls without any.
  /(?:arguments|input) is (?:missing|\{|")/,
  // OpenAI takes these without: they have a default, or only tell apart what OpenAI keeps.
  /^responses: input\[\d\]\.(?:id|status|content\[0\]\.annotations|content\[1\]\.detail) is missing/,
  /^responses: input\[\d\]\.output\[\d\]\.detail is missing/,
  /^responses: tools\[\d\](?:\.tools\[0\])?\.(?:parameters|strict|description) is missing/,
]

describe('the types that providers publish', () => {
  const { own, translated } = sentBodies()
  const unfit = misfits([...own, ...translated])
  const faultsOf = (sent: readonly Sent[], from: number): string[] =>
    sent.flatMap(({ what }, i) => (unfit.has(from + i) ? [`${what}\n  ${unfit.get(from + i)}`] : []))

  it('fit each body that a line gets in another protocol, whatever a caller leaves out or mistypes', () => {
    assert.ok(translated.length > 100)
    assert.deepEqual(faultsOf(translated, own.length), [])
  })

  it('fit each body that is not refused, but for what lines are known to take', () => {
    const faults = faultsOf(own, 0).filter(
      (fault) => !TOLERATED.some((one) => one.test(fault.split('\n', 1)[0] ?? '')),
    )
    assert.deepEqual(faults, [])
  })
})
