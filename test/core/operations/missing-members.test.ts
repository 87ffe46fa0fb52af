import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { bodyFault } from '../../../lib/core/operations/body/body-schema.ts'
import { estimateTokens, type RequestFacts } from '../../../lib/core/operations/index.ts'
import { holderOf, memberFaults, nonsenseIn } from '../../support/member-faults.ts'
import { OTHER_REQUESTS } from '../../support/whole-requests.ts'

/** Faults that are none: a document can be a text or have fields, and both numbers and texts are a length. */
const TOLERATED = /^(?:documents\[\d\] is ["{]|seconds is 7$|documents\[1\]\.text is null$)/

const figuresOf = ({ estimatedInputTokens, units = 0, images, windowTokens = 0 }: RequestFacts) => [
  estimatedInputTokens,
  units,
  images,
  windowTokens,
]

describe('a request for output other than text', () => {
  for (const { operation, request, required } of OTHER_REQUESTS) {
    const facts = (json: Record<string, unknown>) =>
      operation.facts(json, Buffer.from(JSON.stringify(json)), estimateTokens)

    it(`is accepted with all its members: ${operation.path}`, () => {
      assert.equal(bodyFault(operation.schema, request), undefined)
    })

    it(`is refused with the member that is missing or has a wrong type, unless it is optional: ${operation.path}`, () => {
      for (const { json, param, what } of memberFaults(request)) {
        const fault = bodyFault(operation.schema, json)
        const isAbsent = / is (?:missing|null)$/.test(what)
        if ((isAbsent && !required.test(param)) || TOLERATED.test(what)) {
          assert.equal(fault, undefined, `${what}: ${fault?.message}`)
          for (const figure of figuresOf(facts(json))) assert.ok(Number.isFinite(figure), what)
          continue
        }
        assert.ok(fault, `${what} is accepted`)
        const holder = holderOf(param)
        const isNamed = fault.param.startsWith(param) || (holder !== '' && fault.param === holder)
        assert.ok(isNamed, `${what}: ${fault.param}`)
        assert.deepEqual(nonsenseIn(fault), [], what)
      }
    })
  }
})
