import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  isPrivateHost,
  isPublicAddress,
  lookupPublic,
  PrivateAddress,
} from '../../../lib/endpoints/video/content/public-address.ts'

describe('a public address', () => {
  const rows: [string, boolean][] = [
    ['93.184.216.34', true],
    ['2606:2800:220:1:248:1893:25c8:1946', true],
    ['127.0.0.1', false],
    ['10.1.2.3', false],
    ['172.16.0.1', false],
    ['192.168.1.1', false],
    ['169.254.169.254', false],
    ['100.64.0.1', false],
    ['0.0.0.0', false],
    ['224.0.0.1', false],
    ['255.255.255.255', false],
    ['::', false],
    ['::1', false],
    ['fe80::1', false],
    ['fc00::1', false],
    ['ff02::1', false],
    ['::ffff:10.0.0.1', false],
    ['64:ff9b::a00:1', false],
    ['2002:a00:1::', false],
    ['not an address', false],
  ]
  for (const [address, isPublic] of rows) {
    it(`${address}: ${isPublic}`, () => assert.equal(isPublicAddress(address), isPublic))
  }

  it('is what a name has to be looked up as, for one address and for all', async () => {
    for (const all of [true, false]) {
      const error = await new Promise((resolve) => lookupPublic('localhost', { all }, resolve))
      assert.ok(error instanceof PrivateAddress)
    }
    assert.equal(isPrivateHost('localhost'), false, 'names are judged when they are looked up')
    assert.equal(isPrivateHost('[::1]'), true)
  })
})
