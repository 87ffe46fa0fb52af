import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '../../../lib/core/json/index.ts'
import { bodyFault } from '../../../lib/core/operations/body/body-schema.ts'
import { estimateTokens } from '../../../lib/core/operations/index.ts'
import { translationsOf, Untranslatable } from '../../../lib/core/translate/index.ts'
import { type LeaveOut, refuse } from '../../../lib/core/translate/translation.ts'
import { holderOf, inventedIn, memberFaults, nonsenseIn } from '../../support/member-faults.ts'
import { isFreeForm, REQUESTS } from '../../support/whole-requests.ts'

/** Whether a refusal names the member with the fault, one inside of it, or the object or list that it is a member of. */
function names(param: string, faulty: string): boolean {
  const holder = holderOf(faulty)
  return param.startsWith(faulty) || faulty.startsWith(param) || (holder !== '' && param.startsWith(holder))
}

/** The members whose absence has a meaning that the other protocol can only say with an empty text. */
const EMPTY_RESULT = /^messages\[2\]\.content\[\d\]\.content$/

describe('a request in which one member is missing or has a wrong type', () => {
  for (const { operation, request } of REQUESTS) {
    const faults = [...memberFaults(request, isFreeForm)]
    const understood = faults.filter(({ json }) => !bodyFault(operation.schema, json))

    it(`is refused with that member, or understood: ${operation.path}`, () => {
      for (const { json, param, what } of faults) {
        const fault = bodyFault(operation.schema, json)
        if (fault) {
          assert.ok(names(fault.param, param), `${what}: ${fault.param}`)
          assert.deepEqual(nonsenseIn(fault), [], what)
        } else operation.facts(json, Buffer.from(JSON.stringify(json)), estimateTokens)
      }
    })

    for (const { request: translate, to } of translationsOf(operation))
      for (const [policy, leaveOut] of [
        ['refused', refuse],
        ['left out', () => {}],
      ] as [string, LeaveOut][])
        it(`brings no nonsense to a line with ${to.path}, where members may be ${policy}: ${operation.path}`, () => {
          const context = { upstreamModel: 'upstream', defaultMaxTokens: 3000, leaveOut }
          const sent = (json: JsonObject): unknown => JSON.parse(JSON.stringify(translate(json, context)))
          const whole = sent(request)
          for (const { json, param, what } of understood) {
            try {
              const made = sent(json)
              assert.deepEqual(nonsenseIn(made), [], what)
              if (!EMPTY_RESULT.test(param)) assert.deepEqual(inventedIn(made, whole), [], what)
            } catch (error) {
              if (!(error instanceof Untranslatable)) throw error
              assert.ok(names(error.param, param), `${what}: ${error.param}`)
            }
          }
        })
  }
})
