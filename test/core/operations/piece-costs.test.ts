import { describe, it } from 'node:test'
import { assertCosts } from './cost-of.ts'

describe('what is no word of Latin letters costs', () => {
  it('digits: a token for each three, and one for a blank in front', () => {
    assertCosts([
      ['1', 1],
      ['123', 1],
      ['1234', 2],
      ['1234567', 3],
      [' 1', 2],
      ['  1', 3],
      ['a 1', 3],
      ['\n1', 2],
    ])
  })

  it('blanks: the last one belongs to what follows', () => {
    assertCosts([
      [' ', 1],
      ['  ', 1],
      ['   ', 1 + 1 / 110],
      ['\t\t\t', 1 + 1 / 16],
      [' a', 1],
      ['  a', 2],
      ['   a', 2 + 1 / 110],
      ['\t\t\ta', 2 + 1 / 16],
      [' (', 1],
      [' я', 1],
      ['a ', 2],
      ['a  ', 2],
    ])
  })

  it('line breaks: one token with the blanks before the last', () => {
    assertCosts([
      ['\n', 1],
      ['\n\n\n\n', 1],
      ['\n\n\n\n\n', 1 + 1 / 16],
      [' \n', 1],
      ['\n ', 2],
      ['\n  ', 2],
      ['\n \n ', 2],
      ['\n a', 2],
      ['\n\t\t\t', 2 + 1 / 16],
      ['a\nb', 3],
    ])
  })

  it('punctuation: one token up to three, with the line breaks behind it', () => {
    assertCosts([
      ['(', 1],
      ['...', 1],
      ['....', 1 + 3 / 50],
      ['(-)!', 1 + 0 / 50],
      ['(-)!?', 1 + 0.68],
      ['(-)!?', 1.68],
      [');\n', 1],
      [');\n\n', 1],
      [');\n ', 2],
      ['(1', 2],
      ['(a', 1],
      ['((a', 2],
      [' (a', 2],
      ['----------', 1 + 9 / 50],
      ['-----=====', 1 + 8 / 50],
    ])
  })

  it('an apostrophe: half of a token less behind a word', () => {
    assertCosts([
      ["don't", 1.045 + 0.5],
      ["'t", 1],
      [" 't", 2],
      ['don"t', 2.045],
    ])
  })

  it('words of other alphabets', () => {
    assertCosts([
      ['я', 1],
      ['при', 0.7 + 0.17 * 3],
      [' привет', 0.7 + 0.17 * 6],
      ['(привет', 0.7 + 0.17 * 6 + 0.7],
      ['한', 1],
      ['한국', 0.3 + 0.59 * 2],
      ['(한국', 0.3 + 0.59 * 2 + 0.7],
      ['λ', 1],
      ['λόγος', 0.25 + 0.34 * 5],
      ['(λόγος', 0.25 + 0.34 * 5 + 0.7],
      ['λя', 2],
      ['привет (a', 0.7 + 0.17 * 6 + 2],
    ])
  })

  it('Chinese and Japanese, which are written without blanks', () => {
    assertCosts([
      ['好', 0.73],
      ['你好', 1.46],
      ['。', 0.75],
      ['好。', 0.73 + 0.75],
      ['の', 0.63],
      ['私の', 0.97 + 0.63],
      ['私の。', 0.97 + 0.63 + 0.75],
      ['(好', 0.73 + 0.8],
      [' 好', 0.73],
      ['(の', 0.63 + 0.8],
      ['(。', 1 + 0.75],
      ['好a', 1.73],
    ])
  })

  it('symbols, emoji and halves of pairs', () => {
    assertCosts([
      ['→', 1],
      ['→→', 1 + 1 / 16],
      ['→←', 2],
      ['─'.repeat(17), 2],
      ['😀', 2],
      ['😀😀', 4],
      ['\ud83d', 2],
      ['\ude00', 0.6],
      ['\ude00\ude00', 1.2],
      ['❤\ufe0f', 1.6],
      ['\u2e80', 2],
      ['\u2e80\u2e80', 4],
      ['\u2e80\ude00', 2.6],
      [' →a', 2],
      ['→a', 2],
    ])
  })

  it('letters and digits without a break that change kind every few characters: two thirds of a token each', () => {
    // Six pieces of sixteen characters; five pieces are a plain run, and so is a shorter one.
    assertCosts([
      ['ab12cd34ef56gh78', 16 * 0.66],
      ['abc123abc123abc1', 16 * 0.66],
      ['abc123abc123abcd', 1.045 + 1 + 1.045 + 1 + 1.09],
      ['ab1ab1ab1ab1ab1', 10],
      ['ab12cd34ef56gh78 is', 16 * 0.66 + 1],
      ['is ab12cd34ef56gh78', 1 + 16 * 0.66],
      ['ab12cd34ef56gh78 ab12cd34ef56gh78', 2 * 16 * 0.66],
      ['ab12cd34ef56gh78-ab12cd34', 16 * 0.66 + 1.09 + 1 + 1 + 1],
      // Each character a piece: more than two thirds already.
      ['a1b2c3d4e5f6g7h8', 16],
      // Six pieces of 22 and of 23 characters.
      ['abcd123abcd123abcd1234', 22 * 0.66],
      ['abcd123abcd123abcde1234', 1.09 + 1 + 1.09 + 1 + 1.135 + 2],
    ])
  })
})
