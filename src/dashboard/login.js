// Shows why a login was refused: the style sheet shows the sentence that the address names.
const problem = new URLSearchParams(location.search).get('problem');
if (problem !== null && location.hash === '') location.replace(`#${problem}`);
document.querySelector('input')?.focus();
