import assert from 'node:assert/strict'
import { it } from 'node:test'
import { configWith, KEY, LINE } from './config.ts'
import { faultsOf } from './told-faults.ts'

it('two headers whose names differ only in case are reported, because only one of them can be sent', () => {
  const headers = { 'X-Team': 'a', 'x-team': 'b' }
  assert.deepEqual(faultsOf(configWith({ lines: [{ ...LINE, headers }] })), [
    'lines[0].headers.x-team: is there twice, in other letters',
  ])
})

for (const expiresAt of ['2027-01-01', '2027-01-01T00:00:00', 'soon'])
  it(`an expiry such as ${expiresAt} is refused with the form that it must have`, () => {
    assert.deepEqual(faultsOf(configWith({ keys: [{ ...KEY, expiresAt }] })), [
      'keys[0].expiresAt: must be a time with an offset, such as "2027-01-01T00:00:00Z"',
    ])
  })
