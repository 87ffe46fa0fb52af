import assert from 'node:assert/strict'
import { isIP } from 'node:net'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { clientAddress } from '../../../lib/core/client-address/index.ts'

describe('clientAddress', () => {
  for (const [text, address] of [
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7:51234', '203.0.113.7'],
    [' 203.0.113.7 ', '203.0.113.7'],
    ['2001:db8::1', '2001:db8::1'],
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2001:db8::1]:443', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['[fe80::1%eth0]:443', 'fe80::1'],
    ['::1', '::1'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::ffff:cb00:7107', '203.0.113.7'],
    ['[::ffff:203.0.113.7]:443', '203.0.113.7'],
    ['::203.0.113.7', '203.0.113.7'],
    ['64:ff9b::cb00:7107', '203.0.113.7'],
    ['64:ff9b::203.0.113.7', '203.0.113.7'],
    ['unknown', undefined],
    ['_hidden', undefined],
    ['', undefined],
    ['010.0.0.1', undefined],
    ['10.1', undefined],
    ['203.0.113.7:', undefined],
    ['203.0.113.7:x', undefined],
    ['203.0.113.7, 198.51.100.2', undefined],
    ['[203.0.113.7', undefined],
    ['gateway.example', undefined],
    [`fe80::1%${'x'.repeat(100)}`, undefined],
  ] as const)
    it(`reads ${JSON.stringify(text)} as ${address}`, () => assert.equal(clientAddress(text), address))

  it('reads any address as one text, with or without a port, brackets or a zone', () => {
    const port = fc.integer({ min: 0, max: 65_535 })
    fc.assert(
      fc.property(fc.ipV4(), port, (address, port) => {
        const forms = [address, `${address}:${port}`, `::ffff:${address}`, `[::ffff:${address}]:${port}`]
        for (const form of forms) assert.equal(clientAddress(form), address)
      }),
    )
    fc.assert(
      fc.property(fc.ipV6(), port, (address, port) => {
        const read = clientAddress(address) as string
        assert.notEqual(isIP(read), 0)
        const forms = [`[${address}]`, `[${address}]:${port}`, `${address}%eth0`, address.toUpperCase(), read]
        for (const form of forms) assert.equal(clientAddress(form), read)
      }),
    )
  })

  it('returns an address or nothing for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'0123456789abf:.[]% x') }), (text) => {
        const read = clientAddress(text)
        assert.ok(read === undefined || isIP(read) !== 0)
      }),
    )
  })
})
