import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { proxyByVariables, proxyVariableFaults } from '../../../lib/core/config/proxy-variables.ts'

type Env = Record<string, string>

const HTTPS_PROXY = 'http://proxy:3128'
const through = (env: Env, url = 'https://api.example.com/v1') => proxyByVariables(new URL(url), env)

describe('the proxy of the environment variables', () => {
  it('is the first value that is not empty, in upper or lower case, and uses http by default', () => {
    const rows: [env: Env, proxy: string | undefined][] = [
      [{}, undefined],
      [{ HTTPS_PROXY }, HTTPS_PROXY],
      [{ https_proxy: 'https://a' }, 'https://a'],
      [{ HTTPS_PROXY, https_proxy: 'https://a' }, HTTPS_PROXY],
      [{ HTTPS_PROXY: '', https_proxy: 'https://a' }, 'https://a'],
      [{ HTTPS_PROXY: 'proxy:3128' }, HTTPS_PROXY],
      [{ HTTP_PROXY: 'http://a', ALL_PROXY: 'http://b' }, undefined],
    ]
    for (const [env, proxy] of rows) assert.equal(through(env), proxy, JSON.stringify(env))
    assert.equal(through({ HTTPS_PROXY }, 'http://api.example.com/v1'), undefined)
  })

  const excepted: [noProxy: string, url: string, isExcepted: boolean][] = [
    ['', 'https://api.example.com', false],
    [',, ,', 'https://api.example.com', false],
    ['*', 'https://api.example.com', true],
    ['a,*', 'https://api.example.com', true],
    ['api.example.com', 'https://api.example.com', true],
    ['API.Example.COM', 'https://Api.example.com', true],
    ['example.com', 'https://api.example.com', true],
    ['.example.com', 'https://api.example.com', true],
    ['*.example.com', 'https://api.example.com', true],
    ['*.example.com', 'https://example.com', true],
    ['ample.com', 'https://api.example.com', false],
    ['api.example.com.', 'https://api.example.com', false],
    ['sub.api.example.com', 'https://api.example.com', false],
    ['a b\tc\nexample.com', 'https://api.example.com', true],
    ['a,b', 'https://b', true],
    ['example.com:443', 'https://api.example.com', true],
    ['example.com:8443', 'https://api.example.com', false],
    ['example.com:8443', 'https://api.example.com:8443', true],
    ['example.com:443', 'https://api.example.com:8443', false],
    ['example.com', 'https://api.example.com:8443', true],
    [':443', 'https://api.example.com', false],
    ['*.', 'https://api.example.com', false],
    ['::1', 'https://[::1]:8443', true],
    ['10.0.0.1', 'https://10.0.0.1', true],
  ]
  for (const [noProxy, url, isExcepted] of excepted)
    it(`is ${isExcepted ? 'none' : 'there'} for ${url} with NO_PROXY=${JSON.stringify(noProxy)}`, () => {
      const proxy = isExcepted ? undefined : HTTPS_PROXY
      for (const name of ['NO_PROXY', 'no_proxy'])
        assert.equal(through({ HTTPS_PROXY, [name]: noProxy }, url), proxy)
      assert.equal(through({ HTTPS_PROXY, NO_PROXY: '', no_proxy: noProxy }, url), proxy)
    })

  it('takes its exceptions from the first variable that is not empty', () => {
    assert.equal(through({ HTTPS_PROXY, NO_PROXY: 'other.test', no_proxy: '*' }), HTTPS_PROXY)
  })

  it('is a fault if it is not an http address, and its description does not contain it', () => {
    for (const fit of ['http://a', 'https://u:p@a:1', 'a:3128', 'a'])
      for (const name of ['HTTPS_PROXY', 'https_proxy'])
        assert.deepEqual(proxyVariableFaults({ [name]: fit }), [])
    for (const unfit of ['socks5://a', 'xhttp://a', 'https+a://b', 'http://', 'http://a b'])
      for (const name of ['HTTPS_PROXY', 'https_proxy'])
        assert.deepEqual(
          proxyVariableFaults({ [name]: unfit }),
          [`${name}: must be the http(s) URL of a proxy`],
          unfit,
        )
    assert.deepEqual(proxyVariableFaults({}), [])
    assert.deepEqual(proxyVariableFaults({ HTTPS_PROXY: '', https_proxy: 'ftp://a' }).length, 1)
    assert.deepEqual(proxyVariableFaults({ HTTPS_PROXY, https_proxy: 'ftp://a' }), [])
  })
})
