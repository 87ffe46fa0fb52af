import assert from 'node:assert/strict'
import { it } from 'node:test'
import { redisUrlFault } from '../../examples/gateway/config/redis-url.ts'

for (const url of [
  'redis://127.0.0.1',
  'rediss://:p%23s@[::1]:6380/15?family=6',
  'redis://u:p@redis:6379/',
  'redis+cluster://a:1,b:2',
  'redis+sentinel://:p%C3%A9@a,b/main',
])
  it(`${url} can be used`, () => {
    assert.equal(redisUrlFault(url), undefined)
  })

const ENCODING = /percent-encoded/
const REFUSED: [url: string, why: RegExp][] = [
  ['redis://:p%ss@127.0.0.1', ENCODING],
  ['redis://:p%E9@127.0.0.1', ENCODING],
  ['redis+sentinel://:p%E9@a/main', ENCODING],
  ['redis://:pa#ss@127.0.0.1', ENCODING],
  ['redis://u:pa/ss@127.0.0.1', ENCODING],
  ['redis://127.0.0.1:99999', ENCODING],
  // These would lead to database 0 of the server, or of localhost.
  ['redis://127.0.0.1/main', /number of a database/],
  ['redis:///var/run/redis.sock', /number of a database/],
  ['redis+cluster://a:1/3', /number of a database|no databases/],
]
for (const [url, why] of REFUSED)
  it(`${url} is refused by the check, and its password is not shown`, () => {
    assert.match(redisUrlFault(url) ?? '', why)
  })
